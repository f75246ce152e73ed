// A large trace for benchmarks: a corpus trace repeated with shifted times, correlation, flow and
// External ids, in a temporary folder.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/formats/byte_source.h"

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

// The path of a JSON trace of at least TRAINPROF_BENCHMARK_MB (default 150) megabytes; empty when
// there is no corpus. The file is removed when the program ends.
class RepeatedTrace {
 public:
  RepeatedTrace() {
    const std::string source = std::string(TRAINPROF_CORPUS) + "/hta/ddp_item_a100.json.gz";
    if (!std::filesystem::exists(source)) return;
    const char* wanted = std::getenv("TRAINPROF_BENCHMARK_MB");
    const size_t bytes = (wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 150) * 1'000'000;
    const std::string text = ReadInflated(source);
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
