// Findings that a team lives with: by the policy's list, or by a comment at the line itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "profiler/gate/policy.h"

namespace trainprof {

// By what a place is suppressed.
struct Suppressed {
  std::string why;  // "logging (.trainprof.toml:12, until 2026-12-31)"
  bool in_source = false;
};

// Says of each place whether it is suppressed, and remembers what was of use.
class Suppressor {
 public:
  // `today`: what expires before it suppresses nothing. Keeps a reference.
  Suppressor(const Policy& policy, Date today);

  // By what the finding of this rule (slug and code) is suppressed there; nothing where it is not. Of a place without
  // a file the match is looked for in its names.
  std::optional<Suppressed> By(std::string_view rule, std::string_view code, const Site& site);

  // Of the policy's list: what matched nothing, and what has expired. One line each.
  std::vector<std::string> Complaints() const;

 private:
  bool IsOver(const Suppression& suppression) const;
  std::optional<Suppressed> InSource(std::string_view rule, std::string_view code,
                                     const Site& site);
  const std::vector<std::string>* LinesOf(const std::string& file);

  const Policy& policy_;
  const Date today_;
  std::vector<bool> is_used_;                              // by suppression
  std::map<std::string, std::vector<std::string>> files_;  // by name; of what cannot be read none
};

}  // namespace trainprof
