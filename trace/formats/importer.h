// Readers of other tools' traces. An importer is data: one file import_<name>.cpp that defines
// `importers::<name>`; the build collects them (cmake/registry.cmake), and the one that recognises a
// file's first bytes with the highest priority reads it.
//
//   Result<Trace> trace = ImportTrace("worker0.pt.trace.json.gz");
//   if (!trace.ok()) Print(stderr, "{}\n", trace.error());
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

class ByteSource;

struct ImportProgress {
  uint64_t file_bytes_read = 0;  // of the file on disk
  uint64_t file_bytes = 0;       // its size; 0 when unknown (a pipe)
  uint64_t parsed_bytes = 0;     // after inflating
  uint64_t events = 0;
};

// Which arguments of events a trace keeps: all, for people and for export, or those alone that an
// analysis reads.
enum class KeptArgs : uint8_t { kAll, kOfAnalysis };

struct ImportOptions {
  // Called a few times a megabyte, from the importing thread.
  std::function<void(const ImportProgress&)> progress;
  // When it turns true the import ends with the error "cancelled". May be set by a signal handler.
  const std::atomic<bool>* cancel = nullptr;
  // What the trace may take in memory; an import that needs more ends with an error that says so.
  // 0: three quarters of the machine's memory, or of the process's own limit where that is less.
  uint64_t max_memory_bytes = 0;
  KeptArgs args = KeptArgs::kAll;
  // On how many threads one file may be read; 0: as many as make it faster.
  size_t threads = 0;
};

struct Importer {
  std::string_view slug;                      // "kineto"
  std::string_view description;               // one line for --help and errors
  std::span<const std::string_view> endings;  // of its files' names: which of a folder are traces
  // How sure it is to read a file that begins so (already inflated): 0 is no.
  int (*sniff)(std::string_view first_bytes, std::string_view path);
  // Reads `source` from its begin; `path` is its name.
  Result<Trace> (*read)(ByteSource& source, const std::string& path, const ImportOptions& options);
};

// All importers, in alphabetical order.
std::span<const Importer* const> Importers();

// Whether the name of a file ends like one that some importer reads. Other names may be given, too:
// what counts is the content.
bool IsNamedLikeATrace(std::string_view path);
// "*.json, *.json.gz"
std::string TraceNames();

// Reads a trace with the importer that recognises it. Errors say the file, the byte offset, the
// event, what was expected and what to do; damage that leaves a usable trace is no error but
// counted in Trace::quality. A trace whose importer does not set Trace::source is of its format.
Result<Trace> ImportTrace(const std::string& path, const ImportOptions& options = {});

}  // namespace trainprof
