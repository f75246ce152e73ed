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

// "there is no option '--theem'. Did you mean '--theme'?" `option` as it was typed, with its
// dashes; `known` without. Where none is near, `otherwise` ends the message.
std::string NoSuchOption(std::string_view option, const std::vector<std::string>& known,
                         std::string_view otherwise = "");

}  // namespace trainprof
