// Import of a large Kineto trace against nlohmann's SAX parser (handler that does nothing) and
// simdjson on-demand, which fills the core columns or all arguments. Peers get the file in memory;
// ours streams it from the page cache. CPU time, one thread. Size: TRAINPROF_BENCHMARK_MB (default
// 150). Targets: >= 4x nlohmann, >= 0.7x simdjson, <= 150 bytes an event at the peak.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/benchmarks/repeated_trace.h"
#include "trace/formats/importer.h"
#include "trace/formats/json_scan.h"
#if defined(TRAINPROF_HAS_SIMDJSON)
#include <simdjson.h>
#endif

namespace trainprof {
namespace {

std::unique_ptr<RepeatedTrace> g_trace;  // made in main
double g_peak_bytes_per_event = 0;       // measured in main, before anything else has run

void ReportBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(g_trace->size()));
}

size_t EventCount(const Trace& t) {
  return t.ranges.size() + t.api.size() + t.device_ops.size() + t.syncs.size() + t.instants.size() +
         t.counters.size() + t.flows.size() + t.others.size();
}

// The peak of resident memory, of a child that only imports, above what it had at its start.
double PeakBytesPerEvent() {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const auto status_kb = [](std::string_view key) {
      std::ifstream status("/proc/self/status");
      std::string line;
      while (std::getline(status, line)) {
        if (line.starts_with(key)) return std::atoll(line.c_str() + key.size());
      }
      return 0LL;
    };
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    const long long before = status_kb("VmRSS:");
    const Result<Trace> trace = ImportTrace(g_trace->path());
    double result = 0;
    if (trace.ok()) {
      result = static_cast<double>(status_kb("VmHWM:") - before) * 1024 /
               static_cast<double>(EventCount(trace.value()));
    }
    const bool written = write(ends[1], &result, sizeof(result)) == sizeof(result);
    _exit(written ? 0 : 1);
  }
  double result = 0;
  close(ends[1]);
  if (read(ends[0], &result, sizeof(result)) != sizeof(result)) result = 0;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return result;
}

void BM_Trainprof(benchmark::State& state) {
  size_t events = 0;
  for (auto _ : state) {
    const Result<Trace> trace = ImportTrace(g_trace->path());
    if (!trace.ok()) {
      state.SkipWithError(trace.error().c_str());
      return;
    }
    events = EventCount(trace.value());
  }
  ReportBytes(state);
  state.counters["events"] = static_cast<double>(events);
  state.counters["peak_B_per_event"] = g_peak_bytes_per_event;
}

struct NullHandler : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

void BM_NlohmannSaxNull(benchmark::State& state) {
  const std::string text = ReadInflated(g_trace->path());
  for (auto _ : state) {
    NullHandler handler;
    if (!nlohmann::json::sax_parse(text, &handler)) state.SkipWithError("parse error");
  }
  ReportBytes(state);
}

#if defined(TRAINPROF_HAS_SIMDJSON)

namespace od = simdjson::ondemand;

// What the tables hold, filled by simdjson.
struct Columns {
  StringTable strings;
  ArgsTable args;
  std::vector<int64_t> begin, duration, pid, tid, stream, correlation, external_id;
  std::vector<StringId> name, category;
  std::vector<char> phase;
  std::vector<ArgsId> args_id;
};

int64_t Nanoseconds(od::value value) {
  const std::string_view token = value.raw_json_token();
  int64_t ns = 0;
  json::ParseMicroseconds(token.data(), ns);
  return ns;
}

int64_t IdOf(Columns& columns, od::value value) {
  std::string_view text;
  int64_t number = 0;
  if (!value.get_int64().get(number)) return number;
  if (!value.get_string().get(text))
    return -static_cast<int64_t>(Index(columns.strings.Intern(text)));
  return 0;
}

void AllArgs(Columns& columns, od::object args, std::vector<Arg>& scratch) {
  scratch.clear();
  for (auto field : args) {
    std::string_view key;
    if (field.unescaped_key().get(key)) return;
    Arg arg;
    arg.key = columns.strings.Intern(key);
    od::value value = field.value();
    switch (value.type()) {
      case od::json_type::string:
        arg.value.type = ArgValue::Type::kString;
        arg.value.text = columns.strings.Intern(std::string_view(value.get_string()));
        break;
      case od::json_type::number: {
        const od::number number = value.get_number();
        if (number.get_number_type() == od::number_type::floating_point_number) {
          arg.value.type = ArgValue::Type::kDouble;
          arg.value.real = number.get_double();
        } else {
          arg.value.type = ArgValue::Type::kInt;
          arg.value.integer = number.get_int64();
        }
        break;
      }
      case od::json_type::boolean:
        arg.value.type = bool(value.get_bool()) ? ArgValue::Type::kTrue : ArgValue::Type::kFalse;
        break;
      case od::json_type::null:
        break;
      default:
        arg.value.type = ArgValue::Type::kJson;
        arg.value.text = columns.strings.Intern(simdjson::to_json_string(value).value());
    }
    scratch.push_back(arg);
  }
  columns.args_id.push_back(columns.args.Add(scratch));
}

void CoreArgs(od::object args, int64_t& stream, int64_t& correlation, int64_t& external_id) {
  for (auto field : args) {
    const od::raw_json_string key = field.key();
    int64_t* into = key == "stream"        ? &stream
                    : key == "correlation" ? &correlation
                    : key == "External id" ? &external_id
                                           : nullptr;
    if (into != nullptr && field.value().get_int64().get(*into)) *into = -1;
  }
}

size_t Fill(od::parser& parser, const simdjson::padded_string& text, Columns& c, bool all_args) {
  od::document document = parser.iterate(text);
  std::vector<Arg> scratch;
  for (od::object event : document["traceEvents"].get_array()) {
    int64_t begin = 0, duration = 0, pid = 0, tid = 0, stream = -1, correlation = -1, external = -1;
    StringId name{}, category{};
    char phase = 0;
    for (auto field : event) {
      const od::raw_json_string key = field.key();
      od::value value = field.value();
      std::string_view text_value;
      if (key == "ph") {
        if (!value.get_string().get(text_value) && !text_value.empty()) phase = text_value[0];
      } else if (key == "ts") {
        begin = Nanoseconds(value);
      } else if (key == "dur") {
        duration = Nanoseconds(value);
      } else if (key == "name") {
        if (!value.get_string().get(text_value)) name = c.strings.Intern(text_value);
      } else if (key == "cat") {
        if (!value.get_string().get(text_value)) category = c.strings.Intern(text_value);
      } else if (key == "pid") {
        pid = IdOf(c, value);
      } else if (key == "tid") {
        tid = IdOf(c, value);
      } else if (key == "args") {
        od::object args;
        if (value.get_object().get(args)) continue;
        if (all_args) {
          AllArgs(c, args, scratch);
        } else {
          CoreArgs(args, stream, correlation, external);
        }
      }
    }
    c.begin.push_back(begin);
    c.duration.push_back(duration);
    c.pid.push_back(pid);
    c.tid.push_back(tid);
    c.name.push_back(name);
    c.category.push_back(category);
    c.phase.push_back(phase);
    c.stream.push_back(stream);
    c.correlation.push_back(correlation);
    c.external_id.push_back(external);
  }
  return c.begin.size();
}

void RunSimdjson(benchmark::State& state, bool all_args) {
  const simdjson::padded_string text = simdjson::padded_string::load(g_trace->path());
  for (auto _ : state) {
    od::parser parser;
    Columns columns;
    benchmark::DoNotOptimize(Fill(parser, text, columns, all_args));
  }
  ReportBytes(state);
}

void BM_SimdjsonCoreColumns(benchmark::State& state) { RunSimdjson(state, false); }
void BM_SimdjsonAllArgs(benchmark::State& state) { RunSimdjson(state, true); }
BENCHMARK(BM_SimdjsonCoreColumns)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SimdjsonAllArgs)->Unit(benchmark::kMillisecond);

#endif

BENCHMARK(BM_Trainprof)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_NlohmannSaxNull)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  trainprof::g_trace = std::make_unique<trainprof::RepeatedTrace>();
  if (trainprof::g_trace->path().empty()) {
    std::puts("no corpus: set TRAINPROF_CORPUS");
    return 0;
  }
  std::printf("%.1f MB of JSON\n", static_cast<double>(trainprof::g_trace->size()) * 1e-6);
  malloc_trim(0);  // what making the file took must not hide what the import takes
  trainprof::g_peak_bytes_per_event = trainprof::PeakBytesPerEvent();
  benchmark::RunSpecifiedBenchmarks();
  trainprof::g_trace.reset();
  return 0;
}
