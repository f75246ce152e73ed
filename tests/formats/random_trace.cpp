// Draws from short lists of values, so that ids, threads and times meet.
#include "tests/formats/random_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/tables/trace.h"

namespace trainprof {
namespace {

// Kineto's words, one of nobody's, and those of described tables (trace.h).
std::vector<std::string> Categories() {
  std::vector<std::string> words = {"cpu_op",          "Operator",    "kernel",
                                    "Kernel",          "gpu_memcpy",  "gpu_memset",
                                    "cuda_runtime",    "cuda_driver", "Runtime",
                                    "user_annotation", "own",         "gpu_user_annotation",
                                    "python_function", "cuda_sync",   "overhead"};
  const Trace none;
  ForEachTable(none, [&]<class T>(Table, const T&) {
    if constexpr (DescribedTable<T>) {
      const std::string word(ChromeWord<T>());
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
  });
  return words;
}

// Random events of every kind, with the awkward values that real files hold.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  std::string Json() {
    std::string text =
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"G\"}],";
    if (Below(2) == 0)
      text += "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},";
    if (Below(2) == 0) text += "\"baseTimeNanoseconds\": 1751410836000000000,";
    text += "\"traceEvents\": [";
    const int count = 1 + Below(60);
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",\n") + EventJson();
    return text + "]}";
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  template <size_t N>
  std::string Pick(const char* const (&choices)[N]) {
    return choices[Below(static_cast<int>(N))];
  }

  std::string EventJson() {
    const std::string phase =
        Pick({"X", "X", "X", "X", "X", "B", "E", "i", "C", "s", "f", "t", "b", "e", "n", "M", "O"});
    std::string text = fmt::format("{{\"ph\": \"{}\", \"name\": {}", phase, NameJson(phase));
    if (Below(8) != 0) {
      const int category = Below(static_cast<int>(categories_.size()));
      text += fmt::format(", \"cat\": \"{}\"", categories_[static_cast<size_t>(category)]);
    }
    text += fmt::format(", \"pid\": {}", Pick({"0", "1", "4711", "-1", "\"Spans\"", "\"host a\""}));
    text += fmt::format(", \"tid\": {}", Pick({"7", "20", "4711", "-1029147072", "\"4711\"",
                                               "\"stream 7\"", "\"worker\""}));
    text += fmt::format(", \"ts\": {}", TimeJson());
    if (phase == "X" && Below(10) != 0) text += fmt::format(", \"dur\": {}", Below(50));
    if (phase == "f" || Below(20) == 0) text += ", \"bp\": \"e\"";
    if (phase == "i") text += ", \"s\": \"t\"";
    if (phase == "s" || phase == "f" || phase == "t" || phase == "b" || Below(20) == 0) {
      text += fmt::format(", \"id\": {}", Pick({"1", "2", "\"0x1f\"", "\"text\"", "77"}));
    }
    if (Below(15) == 0) text += ", \"cname\": \"good\", \"tts\": 12.25";
    if (phase == "M") return text + ", \"args\": {\"name\": \"named\"}}";
    if (Below(4) != 0) text += ", \"args\": {" + ArgsJson() + "}";
    return text + "}";
  }

  std::string NameJson(const std::string& phase) {
    if (phase == "M") return Pick({"\"process_name\"", "\"thread_name\"", "\"other_meta\""});
    return Pick({"\"aten::add\"", "\"ProfilerStep#5\"", "\"enumerate(DataLoader)#x\"",
                 "\"a\\\"b\\\\c\"", "\"line\\nbreak\"", "\"\\u00e9\\ud83d\\ude00\"",
                 "\"cudaLaunchKernel\"", "\"\"", "\"Memcpy HtoD (Pageable -> Device)\"",
                 "\"void k<float>(int)\"", "\"[memory]\""});
  }

  std::string TimeJson() {
    const int64_t us = 1623142623460000 + Below(200);
    if (Below(2) == 0) return std::to_string(us);
    return fmt::format("{}.{:03}", us, Below(1000));
  }

  std::string ArgsJson() {
    std::string text;
    const int count = Below(5);
    for (int i = 0; i < count; ++i) {
      text += text.empty() ? "" : ", ";
      text += fmt::format(
          "\"{}\": {}",
          Pick({"device", "stream", "correlation", "bytes", "External id", "x", "^y", "Seq",
                "Collective name", "wait_on_cuda_event_id", "wait_on_cuda_event_record_corr_id",
                "Bytes", "Total Allocated", "state", "weight_ns", "Call stack"}),
          Pick({"0",
                "7",
                "20",
                "-1",
                "123456789012345",
                "-9223372036854775808",
                "92233720368547758080",
                "0.1",
                "4.0",
                "-0.0",
                "1e300",
                "1e999",
                "88.88888888888889",
                "null",
                "true",
                "false",
                "\"text\"",
                "\"waiting\"",
                "\"train.py(7): step;main\"",
                "\"\"",
                "[[], [1, 2]]",
                "{\"a\": [\"b\"]}",
                "NaN",
                "N/A",
                "[NaN]"}));
    }
    return text;
  }

  std::mt19937 random_;
  const std::vector<std::string> categories_ = Categories();
};

}  // namespace

std::string RandomTraceJson(uint32_t seed) { return RandomTrace(seed).Json(); }

}  // namespace trainprof
