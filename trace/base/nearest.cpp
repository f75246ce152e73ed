#include "trace/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace trainprof {
namespace {

// A word this many edits away, or fewer, may be what was meant; of a short one fewer.
constexpr size_t kMostEdits = 3;

size_t EditsAllowed(std::string_view word) {
  return std::clamp<size_t>(word.size() / 2, 1, kMostEdits);
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string Nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLeastBeginning = 2;
  std::vector<std::string> longer;
  std::copy_if(known.begin(), known.end(), std::back_inserter(longer), [&](const std::string& k) {
    return word.size() >= kLeastBeginning && k.starts_with(word);
  });
  if (longer.size() == 1) return longer.front();
  std::string nearest;
  size_t best = EditsAllowed(word) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string NoSuchOption(std::string_view option, const std::vector<std::string>& known,
                         std::string_view otherwise) {
  const size_t dashes = std::min(option.find_first_not_of('-'), option.size());
  const std::string nearest = Nearest(option.substr(dashes), known);
  return fmt::format("there is no option '{}'.", option) +
         (nearest.empty() ? std::string(otherwise) : fmt::format(" Did you mean '--{}'?", nearest));
}

}  // namespace trainprof
