// Picks the exporter of a file name.
#include "trace/formats/exporter.h"

#include <fmt/format.h>

#include <vector>

namespace trainprof {

#define TRAINPROF_ENTRY(symbol, slug) const Exporter& Exporter_##symbol();
#include "exporters.inc"
#undef TRAINPROF_ENTRY

std::span<const Exporter* const> Exporters() {
  static const std::vector<const Exporter*> all = {
#define TRAINPROF_ENTRY(symbol, slug) &Exporter_##symbol(),
#include "exporters.inc"
#undef TRAINPROF_ENTRY
  };
  return all;
}

Result<void> ExportTrace(const Trace& trace, const std::string& path,
                         const ExportOptions& options) {
  std::string known;
  for (const Exporter* exporter : Exporters()) {
    if (exporter->owns(path)) return exporter->write(trace, path, options);
    known +=
        fmt::format("{}{} ({})", known.empty() ? "" : ", ", exporter->slug, exporter->description);
  }
  return Error{
      fmt::format("{}: the file's ending says no known format. trainprof writes: {}", path, known)};
}

}  // namespace trainprof
