#include "trace/tables/quality.h"

namespace trainprof {

std::string_view Name(QualitySeverity severity) {
  switch (severity) {
    case QualitySeverity::kInfo:
      return "info";
    case QualitySeverity::kWarning:
      return "warning";
    case QualitySeverity::kDataLoss:
      return "data_loss";
  }
  return "info";
}

void Quality::Count(std::string_view kind, QualitySeverity severity, int64_t count,
                    std::string_view detail) {
  if (count == 0) return;
  for (QualityItem& item : items_) {
    if (item.kind == kind) {
      item.count += count;
      const bool is_graver = severity > item.severity;
      if (is_graver) item.severity = severity;
      if (!detail.empty() && (is_graver || item.detail.empty())) item.detail = detail;
      return;
    }
  }
  items_.push_back({std::string(kind), severity, count, std::string(detail)});
}

int64_t Quality::CountOf(std::string_view kind) const {
  for (const QualityItem& item : items_) {
    if (item.kind == kind) return item.count;
  }
  return 0;
}

}  // namespace trainprof
