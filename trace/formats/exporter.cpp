// Picks the exporter of a file name.
#include "trace/formats/exporter.h"

#include <fmt/format.h>

#include <vector>

#include "trace/io/output_file.h"

#define TRAINPROF_ENTRY(symbol, slug) \
  namespace trainprof::exporters {    \
  extern const Exporter symbol;       \
  }
#include "exporters.inc"
#undef TRAINPROF_ENTRY

namespace trainprof {

std::span<const Exporter* const> Exporters() {
  static const std::vector<const Exporter*> all = {
#define TRAINPROF_ENTRY(symbol, slug) &exporters::symbol,
#include "exporters.inc"
#undef TRAINPROF_ENTRY
  };
  return all;
}

std::string ExportNames() {
  std::string names;
  for (const Exporter* exporter : Exporters()) {
    for (const std::string_view ending : exporter->endings) {
      names += fmt::format("{}*{}", names.empty() ? "" : " or ", ending);
    }
  }
  return names;
}

namespace {

constexpr std::string_view kOfStreams = "chrome";

// /dev/stdout and the like have no ending.
bool HasNoEnding(const std::string& path) {
  return IsWrittenInto(path) && path.find('.', path.rfind('/') + 1) == std::string::npos;
}

// Of several endings that a name has the longest decides: ".speedscope.json", not ".json".
Result<const Exporter*> ExporterOf(const std::string& path) {
  const bool any = HasNoEnding(path);
  const Exporter* found = nullptr;
  size_t longest = 0;
  std::string known;
  for (const Exporter* exporter : Exporters()) {
    for (const std::string_view ending : exporter->endings) {
      if (!path.ends_with(ending) || ending.size() <= longest) continue;
      longest = ending.size();
      found = exporter;
    }
    if (any && exporter->slug == kOfStreams) return exporter;
    known +=
        fmt::format("{}{} ({})", known.empty() ? "" : ", ", exporter->slug, exporter->description);
  }
  if (found != nullptr) return found;
  return Error{fmt::format(
      "{}: the file's name does not end like a known format. trainprof writes: {}", path, known)};
}

}  // namespace

Result<void> CheckExportName(const std::string& path) {
  const Result<const Exporter*> exporter = ExporterOf(path);
  return exporter.ok() ? Result<void>() : Error{exporter.error()};
}

Result<void> ExportTrace(const Trace& trace, const std::string& path,
                         const ExportOptions& options) {
  const Result<const Exporter*> exporter = ExporterOf(path);
  if (!exporter.ok()) return Error{exporter.error()};
  return exporter.value()->write(trace, path, options);
}

Result<MergedRanks> ExportMerged(const VisitRanks& ranks, const std::string& path,
                                 const ExportOptions& options) {
  const Result<const Exporter*> exporter = ExporterOf(path);
  if (!exporter.ok()) return Error{exporter.error()};
  if (exporter.value()->write_merged == nullptr) {
    return Error{
        fmt::format("{}: {} cannot hold several ranks in one file", path, exporter.value()->slug)};
  }
  return exporter.value()->write_merged(ranks, path, options);
}

}  // namespace trainprof
