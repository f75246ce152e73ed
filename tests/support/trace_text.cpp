// Traces as text, and files for a test.
#include "tests/support/trace_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "trace/formats/chrome/stack_text.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/byte_source.h"

namespace trainprof {
namespace {

// What is known of a launch.
std::string ConfigText(const LaunchConfig& config) {
  std::string text;
  const auto shape = [&](const char* what, const LaunchConfig::Shape& s) {
    if (s != LaunchConfig::kNoShape) text += fmt::format(" {} {}x{}x{}", what, s[0], s[1], s[2]);
  };
  const auto number = [&](const char* what, auto value) {
    if (value != LaunchConfig::kUnknown) text += fmt::format(" {} {}", what, value);
  };
  shape("grid", config.grid);
  shape("block", config.block);
  shape("cluster", config.cluster);
  number("registers", config.registers_per_thread);
  number("shared", config.shared_bytes);
  number("local", config.local_bytes_per_thread);
  number("context", config.context);
  number("graph", config.graph);
  number("node", config.graph_node);
  number("occupancy", config.theoretical_occupancy_percent);
  number("estimated", config.estimated_occupancy_percent);
  return text;
}

class Printer {
 public:
  explicit Printer(const Trace& trace) : t_(trace) {}

  std::string Print() {
    PrintHeader();
    for (uint32_t track : TrackOrder()) PrintTrack(TrackId{track});
    std::vector<std::string> others;
    for (const OtherEvent& other : t_.others) {
      const std::string_view json = t_.Text(other.json);
      others.push_back(other.has_time ? fmt::format("other {} {}\n", other.begin.ns, json)
                                      : fmt::format("other {}\n", json));
    }
    std::sort(others.begin(), others.end());
    for (const std::string& other : others) out_ += other;
    return std::move(out_);
  }

 private:
  void PrintHeader() {
    out_ += fmt::format("base {} rank {} of {} known {} extent {} {}\n", t_.base_ns, t_.rank,
                        t_.world_size, t_.rank_known, t_.extent.begin.ns, t_.extent.end.ns);
    std::vector<std::string> lines;
    for (const Device& d : t_.devices) {
      lines.push_back(fmt::format("device {} \"{}\" {} B cc {}.{} {} SMs\n", d.id, t_.Text(d.name),
                                  d.total_memory_bytes, d.compute_major, d.compute_minor,
                                  d.num_sms));
    }
    for (const Process& p : t_.processes) {
      lines.push_back(fmt::format("process {} \"{}\" labels \"{}\" sort {}\n", p.pid,
                                  t_.Text(p.name), t_.Text(p.labels), p.sort_index));
    }
    for (const auto& [key, value] : t_.environment) {
      if (key != "baseTimeNanoseconds")
        lines.push_back(fmt::format("environment {} {}\n", key, value));
    }
    for (const auto& [key, raw] : t_.source_members) {
      if (key != "baseTimeNanoseconds") lines.push_back(fmt::format("member {} {}\n", key, raw));
    }
    for (const Opening& o : t_.openings) {
      lines.push_back(fmt::format("opening of {} \"{}\"{}\n", t_.processes[Index(o.process)].pid,
                                  t_.Text(o.name), Stack(o.stack)));
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) out_ += line;
  }

  std::vector<uint32_t> TrackOrder() const {
    std::vector<uint32_t> order(t_.tracks.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](uint32_t i) {
      const Track& track = t_.tracks[i];
      return std::tuple(t_.processes[Index(track.process)].pid, track.tid, track.kind);
    };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    return order;
  }

  void PrintTrack(TrackId id) {
    constexpr const char* kKinds[] = {"thread", "stream", "other"};
    const Track& track = t_.tracks[Index(id)];
    out_ += fmt::format("{} {}/{} \"{}\" sort {}", kKinds[static_cast<size_t>(track.kind)],
                        t_.processes[Index(track.process)].pid, track.tid, t_.Text(track.name),
                        track.sort_index);
    if (track.device != kNoDevice) {
      out_ += fmt::format(" device {}", t_.devices[Index(track.device)].id);
    }
    out_ += '\n';
    PrintRows(t_.ranges, id, [&](uint32_t row) {
      constexpr const char* kNames[] = {"annotation",     "op",         "python", "overhead",
                                        "gpu_annotation", "device_row", "range"};
      const Row parent = t_.ranges.parent[row];
      return std::pair(
          std::string(kNames[static_cast<size_t>(t_.ranges.kind[row])]),
          fmt::format("{}{}{}", Category(t_.ranges.category[row]), Stack(t_.ranges.stack[row]),
                      parent == kNoRow
                          ? ""
                          : fmt::format(" in {}", t_.Text(t_.ranges.name[Index(parent)]))));
    });
    PrintRows(t_.api, id, [&](uint32_t row) {
      return std::pair(fmt::format("call({})", static_cast<int>(t_.api.kind[row])),
                       Category(t_.api.category[row]) + Correlation(t_.api.correlation[row]) +
                           Stack(t_.api.stack[row]));
    });
    PrintRows(t_.device_ops, id, [&](uint32_t row) {
      constexpr const char* kNames[] = {"kernel", "copy", "memset"};
      const DeviceOpTable& ops = t_.device_ops;
      const Row launch = ops.launch[row];
      std::string text = Category(ops.category[row]) + Correlation(ops.correlation[row]);
      if (ops.kind[row] != DeviceOpKind::kKernel) text += fmt::format(" {} B", ops.bytes[row]);
      if (ops.kind[row] == DeviceOpKind::kCopy) {
        text += fmt::format(" direction {}", static_cast<int>(ops.direction[row]));
      }
      if (ops.source[row] != MemoryKind::kUnknown || ops.target[row] != MemoryKind::kUnknown) {
        text += fmt::format(" {} to {}", Name(ops.source[row]), Name(ops.target[row]));
      }
      if (const LaunchConfig* config = t_.ConfigOf(Row{row})) text += ConfigText(*config);
      if (const Collective* call = t_.CollectiveOf(Row{row})) text += CollectiveText(*call);
      if (launch != kNoRow) text += fmt::format(" launched {}", t_.api.begin[Index(launch)].ns);
      return std::pair(std::string(kNames[static_cast<size_t>(ops.kind[row])]), text);
    });
    ForEachTable(t_, [&]<class T>(Table, const T& table) {
      if constexpr (DescribedTable<T>) {
        PrintRows(table, id, [&](uint32_t row) {
          std::string text = NamedColumns(table, row);
          if constexpr (std::is_same_v<T, SyncTable>) text += WaitText(row);
          return std::pair(std::string(T::kTitle), text);
        });
      }
    });
    PrintRows(t_.instants, id, [&](uint32_t row) {
      const char scope = t_.instants.scope[row];
      return std::pair(std::string("instant"),
                       Category(t_.instants.category[row]) + Stack(t_.instants.stack[row]) +
                           (scope == 0 ? "" : fmt::format(" scope {}", scope)) +
                           AllocationText(Row{row}));
    });
    PrintRows(t_.counters, id, [&](uint32_t row) {
      return std::pair(std::string("counter"), Category(t_.counters.category[row]));
    });
    PrintRows(t_.flows, id, [&](uint32_t row) {
      const FlowTable& flows = t_.flows;
      return std::pair(fmt::format("flow {}", flows.phase[row]),
                       fmt::format("{} id {}{}", Category(flows.category[row]), flows.id[row],
                                   flows.bind[row] == 'e' ? " bind" : ""));
    });
  }

  template <class Describe>
  void PrintRows(const EventColumns& table, TrackId track, Describe describe) {
    const auto [first, last] = table.rows_of(track);
    for (uint32_t row = first; row < last; ++row) {
      const auto [what, more] = describe(row);
      out_ += fmt::format("  {} [{},{}) \"{}\"{}{}\n", what, table.begin[row].ns, table.end(row).ns,
                          t_.Text(table.name[row]), more, Args(table.args[row]));
    }
  }

  std::string Category(StringId category) const {
    return category == kEmptyString ? "" : fmt::format(" cat {}", t_.Text(category));
  }
  std::string Stack(StackId stack) const {
    return stack == kNoStack ? "" : fmt::format(" at {}", StackSpelled(t_, stack));
  }
  // Numbers but for `unknown`, each after its name.
  static std::string Numbers(int64_t unknown,
                             std::initializer_list<std::pair<std::string_view, int64_t>> numbers) {
    std::string text;
    for (const auto& [name, value] : numbers) {
      if (value != unknown) text += fmt::format(" {} {}", name, value);
    }
    return text;
  }
  std::string CollectiveText(const Collective& call) const {
    return fmt::format(" {} of {} {}{}", t_.Text(call.operation), t_.Text(call.communicator),
                       t_.Text(call.members),
                       Numbers(Collective::kUnknown, {{"number", call.sequence}}));
  }
  std::string WaitText(uint32_t row) const {
    const SyncTable& syncs = t_.syncs;
    return fmt::format(" kind {}", Name(syncs.kind[row])) +
           Numbers(kNoCorrelation, {{"context", syncs.context[row]},
                                    {"event", syncs.waited_event[row]},
                                    {"of stream", syncs.waited_stream[row]},
                                    {"recorded by", syncs.waited_record[row]},
                                    {"of thread", syncs.waited_thread[row]}});
  }
  std::string AllocationText(Row row) const {
    const Allocation* const a = t_.AllocationOf(row);
    if (a == nullptr) return {};
    return Numbers(Allocation::kUnknown, {{"size", a->bytes},
                                          {"at", a->address},
                                          {"allocated", a->Total(MemoryTotal::kAllocated)},
                                          {"reserved", a->Total(MemoryTotal::kReserved)},
                                          {"on the host", a->Total(MemoryTotal::kHost)},
                                          {"pool", a->pool_bytes},
                                          {"pool used", a->pool_used_bytes}}) +
           fmt::format(" of device {} {} {}", a->device_id, Name(a->kind), t_.Text(a->source));
  }
  static std::string Correlation(int64_t correlation) {
    return correlation == kNoCorrelation ? "" : fmt::format(" #{}", correlation);
  }
  template <class T>
  std::string NamedColumns(const T& table, uint32_t row) const {
    std::string text;
    ForEachNamedColumn(table, [&]<class C>(std::string_view name, const std::vector<C>& column) {
      if constexpr (std::is_same_v<C, StringId>) {
        text += Category(column[row]);
      } else if constexpr (std::is_same_v<C, StackId>) {
        text += Stack(column[row]);
      } else if constexpr (NamedValue<C>) {
        text += fmt::format(" {}", NameOf(column[row]));
      } else if (name == "correlation") {
        text += Correlation(column[row]);
      } else if (column[row] != kNoCorrelation) {
        text += fmt::format(" {} {}", name, column[row]);
      }
    });
    return text;
  }

  std::string Args(ArgsId id) const {
    std::string text;
    t_.args.ForEach(id, [&](const Arg& arg) {
      text += fmt::format(" {}=", t_.Text(arg.key));
      switch (arg.value.type) {
        case ArgValue::Type::kString:
          text += fmt::format("'{}'", t_.Text(arg.value.text));
          break;
        case ArgValue::Type::kJson:
          text += fmt::format("json {}", t_.Text(arg.value.text));
          break;
        case ArgValue::Type::kInt:
          text += std::to_string(arg.value.integer);
          break;
        case ArgValue::Type::kDouble:  // hexadecimal: equal text is equal bits
          text += fmt::format("{:a}", arg.value.real);
          break;
        case ArgValue::Type::kTrue:
          text += "true";
          break;
        case ArgValue::Type::kFalse:
          text += "false";
          break;
        case ArgValue::Type::kNull:
          text += "null";
          break;
      }
    });
    return text;
  }

  const Trace& t_;
  std::string out_;
};

}  // namespace

std::string TraceText(const Trace& trace) { return Printer(trace).Print(); }

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> files;
  const std::string folder = TRAINPROF_CORPUS;
  if (folder.empty() || !std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json.gz") && !path.ends_with("not_a_trace.json.gz")) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
  return fmt::format("first: {}\nagain: {}", a.substr(line, 400), b.substr(line, 400));
}

std::string QualityText(const Trace& trace) {
  std::string text;
  for (const QualityItem& item : trace.quality.items()) {
    text += fmt::format("{} {} ({})\n", item.kind, item.count, Name(item.severity));
  }
  return text;
}

TemporaryFile::TemporaryFile(std::string_view name, std::string_view content) {
  std::string pattern = (std::filesystem::temp_directory_path() / "trainprof-test-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  path_ = fmt::format("{}/{}", folder_, name);
  if (!content.empty()) {
    std::ofstream(path_, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Gzip(std::string_view text) {
  z_stream zlib{};
  constexpr int kGzip = 15 + 16;
  EXPECT_EQ(deflateInit2(&zlib, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zlib, text.size()) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - zlib.avail_out);
  deflateEnd(&zlib);
  return out;
}

std::string ReadWhole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string Decompressed(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = OpenByteSource(path);
  EXPECT_TRUE(source.ok()) << source.error();
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (const size_t read = source.value()->Read(buffer.data(), buffer.size())) {
    text.append(buffer.data(), read);
  }
  return text;
}

Result<Trace> ImportText(std::string_view json) {
  const TemporaryFile file("trace.json", json);
  if (json.empty()) std::ofstream(file.path()).flush();
  return ImportTrace(file.path());
}

Trace Imported(std::string_view json) {
  Result<Trace> trace = ImportText(json);
  EXPECT_TRUE(trace.ok()) << trace.error();
  return std::move(trace).value();
}

}  // namespace trainprof
