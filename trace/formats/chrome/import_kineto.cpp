// Chrome trace JSON as torch.profiler (kineto) and others write it, plain or gzip.
#include <fmt/format.h>

#include <new>

#include "trace/formats/chrome/document_reader.h"
#include "trace/formats/importer.h"

namespace trainprof::importers {
namespace {

int Sniff(std::string_view first_bytes, std::string_view) {
  const size_t start = first_bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string_view::npos) return 0;
  const char first = first_bytes[start];
  if (first_bytes.find("\"traceEvents\"") != std::string_view::npos) return 90;
  return first == '{' ? 50 : first == '[' ? 40 : 0;
}

Result<Trace> ReadSource(ByteSource& source, const std::string& path,
                         const ImportOptions& options) {
  try {
    return DocumentReader(path, options, source).Read();
  } catch (const std::bad_alloc&) {
    return Error{fmt::format(
        "{}: the trace does not fit into memory. Record fewer steps, or read it on a machine with "
        "more memory",
        path)};
  }
}

constexpr std::string_view kEndings[] = {".json", ".json.gz"};

}  // namespace

extern const Importer kineto = {
    .slug = "kineto",
    .description = "Chrome trace JSON of torch.profiler and others, plain or gzip",
    .endings = kEndings,
    .sniff = Sniff,
    .read = ReadSource,
};

}  // namespace trainprof::importers
