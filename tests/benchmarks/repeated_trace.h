// A large trace for benchmarks: a corpus trace, or a generated one, repeated with shifted times,
// correlation, flow and External ids, in a temporary folder.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/formats/io/byte_source.h"

namespace trainprof {

inline std::string ReadInflated(const std::string& path) {
  std::string text;
  Result<std::unique_ptr<ByteSource>> source = OpenByteSource(path);
  if (!source.ok()) return text;
  std::string block(1 << 20, '\0');
  while (const size_t got = source.value()->Read(block.data(), block.size())) {
    text.append(block, 0, got);
  }
  return text;
}

// `text` with the integer part of each number after one of the keys raised by that key's shift.
inline std::string Shifted(std::string_view text, int64_t time_us, int64_t id) {
  struct Key {
    std::string_view text;
    int64_t shift;
  };
  const Key keys[] = {{"\"ts\": ", time_us},
                      {"\"correlation\": ", id},
                      {"\"id\": ", id},
                      {"\"External id\": ", id}};
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  size_t kept = 0;
  for (size_t at = text.find('"'); at != std::string_view::npos; at = text.find('"', at + 1)) {
    for (const Key& key : keys) {
      if (!text.substr(at).starts_with(key.text)) continue;
      const size_t number = at + key.text.size();
      size_t end = number;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      if (end == number) break;
      out += text.substr(kept, number - kept);
      out += std::to_string(std::atoll(std::string(text.substr(number, end - number)).c_str()) +
                            key.shift);
      kept = end;
      at = end;
      break;
    }
  }
  out += text.substr(kept);
  return out;
}

// A trace as kineto writes it, of operators that launch one kernel each; 0.5 s long.
inline std::string GeneratedTrace() {
  std::string text = "{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [";
  constexpr int kOperators = 20'000;
  constexpr int kNames = 200;
  for (int i = 0; i < kOperators; ++i) {
    const int64_t us = 1'661'203'462'000'000 + 25 * i;
    const int id = i + 1;
    text += fmt::format(R"json({}
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op_{}", "pid": 4711, "tid": 4711,
    "ts": {}, "dur": 20,
    "args": {{
      "External id": {}, "Input Dims": [[{}, 512], [96, 512], []], "Input type": ["float", "float", ""], "Call stack": ""
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": {}, "dur": 5,
    "args": {{
      "cbid": 211, "correlation": {}, "External id": {}
    }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, Functor{}<float>>(int)", "pid": 0, "tid": 7,
    "ts": {}, "dur": 9,
    "args": {{
      "External id": {}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {},
      "registers per thread": 32, "shared memory": 0, "blocks per SM": 0.5925926, "grid": [{}, 1, 1], "block": [128, 1, 1]
    }}
  }})json",
                        i == 0 ? "" : ",", i % kNames, us, id, i % 64, us + 8, id, id, i % kNames,
                        us + 14, id, id, i % 64);
  }
  return text + "\n  ]\n}\n";
}

// `text` with three decimals on each "ts" and "dur" in whole microseconds.
inline std::string WithDecimals(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  uint32_t random = 1;
  size_t kept = 0;
  for (size_t at = text.find('"'); at != std::string_view::npos; at = text.find('"', at + 1)) {
    const bool is_time = text.substr(at).starts_with("\"ts\": ");
    if (!is_time && !text.substr(at).starts_with("\"dur\": ")) continue;
    const size_t end = text.find_first_not_of("-0123456789", at + (is_time ? 6 : 7));
    if (end == std::string_view::npos || text[end] == '.') continue;
    random = random * 1664525 + 1013904223;
    out += text.substr(kept, end - kept);
    out += fmt::format(".{:03}", random / 4'300'000);
    kept = end;
  }
  out += text.substr(kept);
  return out;
}

// The path of a JSON trace of at least TRAINPROF_BENCHMARK_MB (default 150) megabytes; empty when
// it could not be written. The file is removed when the program ends.
class RepeatedTrace {
 public:
  explicit RepeatedTrace(bool three_decimals = false) {
    const std::string source = std::string(TRAINPROF_CORPUS) + "/hta/ddp_item_a100.json.gz";
    const char* wanted = std::getenv("TRAINPROF_BENCHMARK_MB");
    const size_t bytes = (wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 150) * 1'000'000;
    std::string text = std::filesystem::exists(source) ? ReadInflated(source) : GeneratedTrace();
    if (three_decimals) text = WithDecimals(text);
    const size_t first = text.find('[', text.find("\"traceEvents\"")) + 1;
    const size_t last = text.rfind(']');
    const std::string_view events = std::string_view(text).substr(first, last - first);
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("trainprof-benchmark-{}.json", static_cast<int>(getpid())))
                .string();
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr) {
      path_.clear();
      return;
    }
    std::fwrite(text.data(), 1, first, file);
    size_ = first;
    constexpr int64_t kShiftUs = 600'000;  // the trace is 0.48 s long
    constexpr int64_t kShiftId = 10'000'000;
    for (int64_t i = 0; size_ < bytes; ++i) {
      std::string part = i == 0 ? "" : ",";
      part += Shifted(events, kShiftUs * i, kShiftId * i);
      size_ += std::fwrite(part.data(), 1, part.size(), file);
    }
    size_ += std::fwrite(text.data() + last, 1, text.size() - last, file);
    std::fclose(file);
  }
  RepeatedTrace(const RepeatedTrace&) = delete;
  RepeatedTrace& operator=(const RepeatedTrace&) = delete;
  ~RepeatedTrace() {
    if (!path_.empty()) std::remove(path_.c_str());
  }

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }

 private:
  std::string path_;
  size_t size_ = 0;
};

}  // namespace trainprof
