// Picks the importer of a file.
#include "trace/formats/importer.h"

#include <fmt/format.h>

#include "trace/cancel.h"
#include "trace/formats/byte_source.h"
#include "trace/formats/foreign.h"

namespace trainprof {

#define TRAINPROF_ENTRY(symbol, slug) const Importer& Importer_##symbol();
#include "importers.inc"
#undef TRAINPROF_ENTRY

namespace {

constexpr size_t kSniffBytes = 4096;

std::string KnownFormats() {
  std::string text;
  for (const Importer* importer : Importers()) {
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : ", ", importer->slug, importer->description);
  }
  return text;
}

}  // namespace

std::span<const Importer* const> Importers() {
  static const std::vector<const Importer*> all = {
#define TRAINPROF_ENTRY(symbol, slug) &Importer_##symbol(),
#include "importers.inc"
#undef TRAINPROF_ENTRY
  };
  return all;
}

Result<Trace> ImportTrace(const std::string& path, const ImportOptions& options) {
  const Result<std::string> head = ReadHead(path, kSniffBytes);
  if (!head.ok()) return Error{head.error()};
  if (head.value().empty()) {
    return Error{fmt::format("{}: the file is empty, a trace was expected", path)};
  }
  const Importer* best = nullptr;
  int best_priority = 0;
  for (const Importer* importer : Importers()) {
    const int priority = importer->sniff(head.value(), path);
    if (priority > best_priority) {
      best = importer;
      best_priority = priority;
    }
  }
  if (best == nullptr) {
    if (const std::string advice = ForeignFileAdvice(path, head.value()); !advice.empty()) {
      return Error{fmt::format("{}: {}", path, advice)};
    }
    return Error{
        fmt::format("{}: not a trace that trainprof knows. It reads: {}", path, KnownFormats())};
  }
  return ResultUnlessCancelled(path, options.cancel, [&] { return best->read(path, options); });
}

}  // namespace trainprof
