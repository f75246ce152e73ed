// What was lost, repaired or not understood, counted by kind. Bad input is data: it is never fatal
// and never silent. Every report shows these counts, and findings lower their confidence by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainprof {

enum class QualitySeverity : uint8_t {
  kInfo,      // unusual, harmless: kernel_without_launch where a CUDA graph explains it
  kWarning,   // repaired or ignored: a negative duration
  kDataLoss,  // something that happened is not in the trace
};

std::string_view Name(QualitySeverity severity);  // "info", "warning", "data_loss"

struct QualityItem {
  std::string kind;  // snake_case, stable: programs match on it
  QualitySeverity severity = QualitySeverity::kInfo;
  int64_t count = 0;
  std::string detail;  // an instance, in words: "event 812: dur < 0; dropped"

  bool operator==(const QualityItem&) const = default;
};

// The kind of an input that ends early: any row may be missing.
inline constexpr std::string_view kTruncatedInput = "truncated_input";

// Counts by kind, in the order of first sight.
class Quality {
 public:
  // Adds `count` to a kind, which has the gravest severity that it was counted with, and the first
  // detail of that one. O(kinds).
  void Count(std::string_view kind, QualitySeverity severity, int64_t count = 1,
             std::string_view detail = {});
  int64_t CountOf(std::string_view kind) const;
  const std::vector<QualityItem>& items() const { return items_; }

  bool operator==(const Quality&) const = default;

 private:
  std::vector<QualityItem> items_;
};

}  // namespace trainprof
