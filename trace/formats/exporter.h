// Writers of other tools' formats. An exporter is data: one file export_<name>.cpp that defines
// `exporters::<name>`; the build collects them (cmake/registry.cmake).
//
//   Result<void> done = ExportTrace(trace, "trace.json.gz");
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct ExportOptions {
  bool overwrite = false;  // else an existing file is an error
};

// Passes each rank's trace, in the same order every time, and stops at the first error. One trace
// at a time need be in memory.
using VisitRank = std::function<Result<void>(const Trace& trace)>;
using VisitRanks = std::function<Result<void>(const VisitRank& visit)>;

// What became of the ranks of a merged file.
struct MergedRanks {
  size_t count = 0;
  // Whether times of different ranks can be compared. Otherwise each rank starts at 0.
  bool aligned = true;
  std::string why_not;
};

struct Exporter {
  std::string_view slug;         // "chrome"
  std::string_view description;  // one line for --help and errors
  // Of names: a file that ends so is written in this format.
  std::span<const std::string_view> endings;
  Result<void> (*write)(const Trace& trace, const std::string& path, const ExportOptions& options);
  // All ranks in one file; visits them twice. Null: the format cannot.
  Result<MergedRanks> (*write_merged)(const VisitRanks& ranks, const std::string& path,
                                      const ExportOptions& options);
};

// All exporters, in alphabetical order.
std::span<const Exporter* const> Exporters();

// "*.json or *.json.gz"
std::string ExportNames();

// Whether a file's ending asks for a format that there is. What has no ending, as /dev/stdout, gets
// Chrome trace JSON.
Result<void> CheckExportName(const std::string& path);

// Writes `trace` in the format that the file's ending asks for, as trace/io/output_file.h does.
Result<void> ExportTrace(const Trace& trace, const std::string& path,
                         const ExportOptions& options = {});

// Writes all ranks to one file, in which nothing of two ranks has the same id; a rank without a
// known number should have one by now. SplitRanks (split_ranks.h) gives them back.
Result<MergedRanks> ExportMerged(const VisitRanks& ranks, const std::string& path,
                                 const ExportOptions& options = {});

}  // namespace trainprof
