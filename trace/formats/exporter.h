// Writers of other tools' formats. An exporter is data: one file export_<name>.cpp that defines
// `const Exporter& Exporter_<name>()`; the build collects them (cmake/registry.cmake).
//
//   Result<void> done = ExportTrace(trace, "trace.json.gz");
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trace/result.h"
#include "trace/trace.h"

namespace trainprof {

struct ExportOptions {
  bool overwrite = false;  // else an existing file is an error
};

struct Exporter {
  std::string_view slug;         // "chrome"
  std::string_view description;  // one line for --help and errors
  // Whether files of this name are this format's, by their ending.
  bool (*owns)(std::string_view path);
  Result<void> (*write)(const Trace& trace, const std::string& path, const ExportOptions& options);
};

// All exporters, in alphabetical order.
std::span<const Exporter* const> Exporters();

// Writes `trace` in the format that the file's ending asks for. The file appears whole or not at
// all: it is written beside and then renamed.
Result<void> ExportTrace(const Trace& trace, const std::string& path,
                         const ExportOptions& options = {});

}  // namespace trainprof
