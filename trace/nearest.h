// What was probably meant by a word that nobody knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainprof {

// Insertions, deletions and substitutions of one character that turn `a` into `b`. O(|a| |b|).
size_t EditDistance(std::string_view a, std::string_view b);

// The nearest of `known`, or of equally near ones the first; "" when none is near. A beginning of
// exactly one of them counts as near.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace trainprof
