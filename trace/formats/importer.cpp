// Picks the importer of a file.
#include "trace/formats/importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/formats/foreign.h"
#include "trace/formats/io/byte_source.h"

#define TRAINPROF_ENTRY(symbol, slug) \
  namespace trainprof::importers {    \
  extern const Importer symbol;       \
  }
#include "importers.inc"
#undef TRAINPROF_ENTRY

namespace trainprof {
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
#define TRAINPROF_ENTRY(symbol, slug) &importers::symbol,
#include "importers.inc"
#undef TRAINPROF_ENTRY
  };
  return all;
}

bool IsNamedLikeATrace(std::string_view path) {
  const auto ends_so = [&](std::string_view ending) { return path.ends_with(ending); };
  return std::any_of(Importers().begin(), Importers().end(), [&](const Importer* importer) {
    return std::any_of(importer->endings.begin(), importer->endings.end(), ends_so);
  });
}

std::string TraceNames() {
  std::string names;
  for (const Importer* importer : Importers()) {
    for (const std::string_view ending : importer->endings) {
      names += fmt::format("{}*{}", names.empty() ? "" : ", ", ending);
    }
  }
  return names;
}

namespace {

// Opens the file once: a stream cannot be read twice.
Result<Trace> Import(const std::string& path, const ImportOptions& options) {
  Result<std::unique_ptr<ByteSource>> opened = OpenByteSource(path, options.threads);
  if (!opened.ok()) return Error{opened.error()};
  PeekedSource source(std::move(opened).value(), kSniffBytes);
  if (source.head().empty()) {
    const std::string damage = source.damage();
    return Error{fmt::format("{}: {}, a trace was expected", path,
                             damage.empty() ? "the file is empty" : damage)};
  }
  const Importer* best = nullptr;
  int best_priority = 0;
  for (const Importer* importer : Importers()) {
    const int priority = importer->sniff(source.head(), path);
    if (priority > best_priority) {
      best = importer;
      best_priority = priority;
    }
  }
  if (best == nullptr) {
    if (const std::string advice = ForeignFileAdvice(path, source.head()); !advice.empty()) {
      return Error{fmt::format("{}: {}", path, advice)};
    }
    return Error{
        fmt::format("{}: not a trace that trainprof knows. It reads: {}", path, KnownFormats())};
  }
  Result<Trace> trace = best->read(source, path, options);
  if (trace.ok() && trace.value().source == SourceKind::kOther) {
    trace.value().format = best->slug;
  }
  return trace;
}

}  // namespace

Result<Trace> ImportTrace(const std::string& path, const ImportOptions& options) {
  return ResultUnlessCancelled(path, options.cancel, [&] { return Import(path, options); });
}

}  // namespace trainprof
