#include "trace/formats/foreign.h"

#include <algorithm>
#include <cctype>

namespace trainprof {
namespace {

struct Known {
  std::string_view mark;  // the name's end, or the first bytes
  std::string_view advice;
};

constexpr std::string_view kNsight =
    "a report of Nsight Systems, which has no format that trainprof reads. Record with trainprof "
    "run -- PROGRAM instead, or give a torch.profiler trace";

constexpr Known kEnds[] = {
    {".nsys-rep", kNsight},
    {".qdrep", kNsight},
    {".qdstrm", kNsight},
    {".ncu-rep",
     "a report of Nsight Compute: counters of single kernels, without a timeline. Record with "
     "trainprof run -- PROGRAM"},
    {".nvvp", "a profile of nvprof. Record with trainprof run -- PROGRAM"},
    {".nvprof", "a profile of nvprof. Record with trainprof run -- PROGRAM"},
    {".pb",
     "a protocol buffer. TensorFlow, JAX and XLA write a .trace.json.gz beside their .xplane.pb: "
     "give that one"},
    {".pftrace",
     "a binary Perfetto trace. Convert it with Perfetto's tool, traceconv json FILE out.json, and "
     "give out.json"},
    {".perfetto-trace",
     "a binary Perfetto trace. Convert it with Perfetto's tool, traceconv json FILE out.json, and "
     "give out.json"},
    {".tpz",
     "one file of a trainprof recording. Give the folder that trainprof run wrote, which holds it"},
    {".tps",
     "one file of a trainprof recording. Give the folder that trainprof run wrote, which holds it"},
    {".pt", "a file of torch.save. Give the .json or .json.gz that torch.profiler wrote"},
    {".pth", "a file of torch.save. Give the .json or .json.gz that torch.profiler wrote"},
    {".pickle",
     "a pickle, such as torch.cuda.memory's snapshots. Give the .json or .json.gz that "
     "torch.profiler wrote"},
    {".csv", "a table. Give the .json or .json.gz that torch.profiler wrote"},
};

constexpr Known kBegins[] = {
    {"SQLite format 3",
     "an SQLite database, such as nsys export writes; trainprof reads no databases. Record with "
     "trainprof run -- PROGRAM, or give a torch.profiler trace"},
    {"PK\x03\x04", "a zip archive. Unpack it, and give the .json or .json.gz inside"},
    {"\x28\xB5\x2F\xFD", "compressed with zstd. Unpack it first: zstd -d FILE"},
    {"\xFD"
     "7zXZ",
     "compressed with xz. Unpack it first: xz -d FILE"},
    {"BZh", "compressed with bzip2. Unpack it first: bzip2 -d FILE"},
};

constexpr Known kDatabase{".sqlite", kBegins[0].advice};

bool EndsWithNoCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.rbegin(), lower.rend(), text.rbegin(), [](char want, char is) {
           return want == std::tolower(static_cast<unsigned char>(is));
         });
}

}  // namespace

std::string ForeignFileAdvice(const std::string& path, std::string_view first_bytes) {
  for (const Known& known : kEnds) {
    if (EndsWithNoCase(path, known.mark)) return std::string(known.advice);
  }
  for (const Known& known : kBegins) {
    if (first_bytes.starts_with(known.mark)) return std::string(known.advice);
  }
  constexpr size_t kTarMark = 257;
  if (first_bytes.size() > kTarMark && first_bytes.substr(kTarMark).starts_with("ustar")) {
    return "a tar archive. Unpack it, and give the .json or .json.gz inside";
  }
  return EndsWithNoCase(path, kDatabase.mark) ? std::string(kDatabase.advice) : std::string();
}

}  // namespace trainprof
