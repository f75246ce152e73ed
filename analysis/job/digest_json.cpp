// A digest as JSON: the same lists of fields (digest_fields.h) write it and read it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/job/digest_fields.h"
#include "trace/base/utf8.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 7;
// As TraceBuilder has them: the difference of any two is a Duration.
constexpr int64_t kFarthestNs = (int64_t{1} << 62) - 1;
constexpr int64_t kMostCounted = int64_t{1} << 48;  // of one kind: those of all ranks are added
constexpr int kDeepest = 32;                        // lists within lists; what we write has five

// --- Words of enumerations. ---

// Those of all values up to the last one.
template <auto kLast>
auto NamesOf() {
  std::array<std::string_view, static_cast<size_t>(kLast) + 1> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = Name(static_cast<decltype(kLast)>(i));
  return names;
}

auto WordsOf(Severity) { return NamesOf<Severity::kError>(); }
auto WordsOf(QualitySeverity) { return NamesOf<QualitySeverity::kDataLoss>(); }
auto WordsOf(StepSource) { return NamesOf<StepSource::kInferred>(); }
auto WordsOf(StepClock) { return NamesOf<StepClock::kDevice>(); }
auto WordsOf(Workload) { return NamesOf<Workload::kInference>(); }
auto WordsOf(HostClass) { return NamesOf<HostClass::kOther>(); }
auto WordsOf(OtherKind) { return NamesOf<OtherKind::kNothing>(); }
constexpr auto WordsOf(BatchWork work) { return NamesOf(work); }
auto WordsOf(SourceKind) {
  constexpr auto words =
      std::to_array<std::string_view>({"recording", "kineto", "chrome", "other"});
  static_assert(static_cast<size_t>(SourceKind::kOther) + 1 == words.size());
  return words;
}
auto WordsOf(Table) {
  constexpr auto words = std::to_array<std::string_view>(
      {"ranges", "api", "device_ops", "syncs", "instants", "counters", "flows", "samples",
       "cpu_times", "idle", "busy", "steps"});
  static_assert(static_cast<size_t>(Table::kSteps) + 1 == words.size());
  return words;
}

// Ids that are indices into a trace: numbers here.
template <class T>
concept IdNumber = Of<T, Row> || Of<T, DeviceId> || Of<T, TrackId>;

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T, size_t N>
struct IsList<std::array<T, N>> : std::true_type {};

// --- Writing. ---

class Writer {
 public:
  template <class T>
  Writer& operator()(const char* name, const T& value) {
    json_[name] = Written(value);
    return *this;
  }
  template <class Class, size_t N>
  void Account(const char* name, const std::vector<AccountLine>& lines) {
    Json account = Json::object();
    for (const AccountLine& line : lines) account[std::string(line.name)] = line.total.ns;
    json_[name] = std::move(account);
  }

  template <class T>
  static Json Written(const T& value) {
    if constexpr (std::same_as<T, std::string>) {
      return Text(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::same_as<T, Duration>) {
      return value.ns;
    } else if constexpr (std::same_as<T, Interval>) {
      return {value.begin.ns, value.end.ns};
    } else if constexpr (std::same_as<T, IntervalSet>) {
      return List(value.intervals());
    } else if constexpr (IdNumber<T>) {
      return static_cast<uint32_t>(value);
    } else if constexpr (std::is_enum_v<T>) {
      return WordsOf(value)[static_cast<size_t>(value)];
    } else if constexpr (std::same_as<T, std::pair<std::string, std::string>>) {
      return {Text(value.first), Text(value.second)};
    } else if constexpr (IsList<T>::value) {
      return List(value);
    } else {
      Writer writer;
      Fields(writer, value);
      return std::move(writer.json_);
    }
  }

 private:
  static Json List(const auto& values) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(Written(value));
    return list;
  }

  // A file's name may be any bytes.
  static Json Text(const std::string& text) {
    bool is_repaired = false;
    RepairUtf8(text, &is_repaired);
    if (!is_repaired) return text;
    Json bytes = Json::array();
    for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
    return {{"bytes", std::move(bytes)}};
  }

  Json json_ = Json::object();
};

// --- Reading: the first thing that is wrong is kept, and all after it ignored. ---

class Reader {
 public:
  Reader(const Json& json, std::string& error) : json_(json), error_(error) {}

  template <class T>
  Reader& operator()(const char* name, T& value) {
    if (const Json* const field = Field(name)) Reader(*field, *this, name).Read(value);
    return *this;
  }
  template <class Class, size_t N>
  void Account(const char* name, std::vector<AccountLine>& lines) {
    const Json* const field = Field(name);
    if (field == nullptr) return;
    Reader account(*field, *this, name);
    std::array<Duration, N> totals{};
    for (size_t i = 0; i < N; ++i) {
      account(std::string(Name(static_cast<Class>(i))).c_str(), totals[i]);
    }
    lines = LinesOf<Class>(totals);
  }

  template <class T>
  void Read(T& value) {
    if (!error_.empty()) return;
    if constexpr (std::same_as<T, std::string>) {
      ReadText(value);
    } else if constexpr (std::same_as<T, bool>) {
      if (!json_.is_boolean()) return Fail("is not true or false");
      value = json_.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      constexpr uint64_t kMost = std::numeric_limits<T>::max();
      value = static_cast<T>(Integer(static_cast<int64_t>(std::numeric_limits<T>::min()),
                                     static_cast<int64_t>(std::min<uint64_t>(kMost, INT64_MAX))));
    } else if constexpr (std::is_floating_point_v<T>) {
      // JSON has no word for what is no number.
      if (json_.is_null()) {
        value = std::numeric_limits<T>::quiet_NaN();
      } else if (json_.is_number()) {
        value = json_.get<T>();
      } else {
        Fail("is no number");
      }
    } else if constexpr (std::same_as<T, Duration>) {
      value.ns = Integer(-2 * kFarthestNs, 2 * kFarthestNs);
    } else if constexpr (std::same_as<T, Interval>) {
      std::array<int64_t, 2> ends{};
      Read(ends);
      if (ends[1] < ends[0] || ends[0] < -kFarthestNs || ends[1] > kFarthestNs) {
        return Fail("is no stretch of time");
      }
      value = {{ends[0]}, {ends[1]}};
    } else if constexpr (std::same_as<T, IntervalSet>) {
      std::vector<Interval> intervals;
      Read(intervals);
      value = IntervalSet::Union(intervals);
      if (!std::ranges::equal(value.intervals(), intervals)) Fail("is not in order");
    } else if constexpr (IdNumber<T>) {
      value = static_cast<T>(Integer(0, UINT32_MAX));
    } else if constexpr (std::is_enum_v<T>) {
      ReadWord(value);
    } else if constexpr (std::same_as<T, std::pair<std::string, std::string>>) {
      std::array<std::string, 2> texts;
      Read(texts);
      value = {texts[0], texts[1]};
    } else if constexpr (IsList<T>::value) {
      ReadList(value);
    } else {
      if (!json_.is_object()) return Fail("is no object");
      Fields(*this, value);
    }
  }

 private:
  // Of a field, or of a part of a list, of what `outer` reads.
  Reader(const Json& json, const Reader& outer, std::string_view name, size_t number = 0)
      : json_(json),
        outer_(&outer),
        name_(name),
        number_(number),
        depth_(outer.depth_ + 1),
        error_(outer.error_) {
    if (depth_ > kDeepest) Fail("is nested too deeply");
  }

  // "analysis.findings.3.title"
  std::string Where() const {
    if (outer_ == nullptr) return {};
    const std::string outer = outer_->Where();
    return (outer.empty() ? "" : outer + ".") +
           (name_.empty() ? std::to_string(number_) : std::string(name_));
  }

  void Fail(std::string_view what) {
    if (error_.empty()) error_ = fmt::format("{} {}", outer_ == nullptr ? "it" : Where(), what);
  }

  const Json* Field(const char* name) {
    if (!error_.empty()) return nullptr;
    if (!json_.is_object()) return Fail("is no object"), nullptr;
    const auto field = json_.find(name);
    if (field == json_.end()) return Fail(fmt::format("lacks \"{}\"", name)), nullptr;
    return &*field;
  }

  int64_t Integer(int64_t least, int64_t most) {
    const bool fits = json_.is_number_unsigned()
                          ? json_.get<uint64_t>() <= static_cast<uint64_t>(most) && most >= 0
                          : json_.is_number_integer() && json_.get<int64_t>() >= least &&
                                json_.get<int64_t>() <= most;
    if (!fits) return Fail("is no whole number in its range"), 0;
    return json_.get<int64_t>();
  }

  void ReadText(std::string& text) {
    if (json_.is_string()) {
      text = json_.get<std::string>();
      return;
    }
    std::vector<uint8_t> bytes;
    (*this)("bytes", bytes);
    text.assign(bytes.begin(), bytes.end());
  }

  template <class Enum>
  void ReadWord(Enum& value) {
    std::string word;
    ReadText(word);
    const auto words = WordsOf(value);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) return Fail(fmt::format("is \"{}\", which is not known", word));
    value = static_cast<Enum>(found - words.begin());
  }

  template <class T>
  void ReadList(std::vector<T>& list) {
    if (!json_.is_array()) return Fail("is no list");
    list.clear();  // grows as it is read: a list of anything else takes no memory
    for (size_t i = 0; i < json_.size() && error_.empty(); ++i) {
      Reader(json_[i], *this, "", i).Read(list.emplace_back());
    }
  }
  template <class T, size_t N>
  void ReadList(std::array<T, N>& list) {
    if (!json_.is_array() || json_.size() != N) return Fail(fmt::format("is no list of {}", N));
    for (size_t i = 0; i < N; ++i) Reader(json_[i], *this, "", i).Read(list[i]);
  }

  const Json& json_;
  const Reader* outer_ = nullptr;
  std::string_view name_;
  size_t number_ = 0;
  int depth_ = 0;
  std::string& error_;
};

// What a type does not say: lists that go with each other have one length, and counts can be added.
std::string ErrorIn(const RankDigest& digest) {
  const RankAnalysis& rank = digest.analysis;
  for (const QualityItem& item : rank.quality) {
    if (item.count < 0 || item.count > kMostCounted) return "a count of the quality is impossible";
  }
  if (digest.host_steps.size() != rank.steps.count()) return "host_steps are not the steps";
  if (digest.devices.size() != rank.devices.size()) return "devices are not those of the analysis";
  for (size_t i = 0; i < digest.devices.size(); ++i) {
    const DeviceSteps& device = digest.devices[i];
    const bool is_same =
        device.device == rank.devices[i].id && device.steps.size() == rank.device_steps.count();
    if (!is_same) return "devices are not those of the analysis";
    const auto fits = [&](const OperationSteps& operation) {
      return operation.steps.size() == device.steps.size();
    };
    if (!fits(device.others) || !std::ranges::all_of(device.operations, fits)) {
      return "operations are not of the device's steps";
    }
  }
  return {};
}

}  // namespace

std::string DigestToJson(const RankDigest& digest) {
  Json json = Writer::Written(digest);
  json["version"] = kVersion;
  return json.dump();
}

Result<RankDigest> DigestFromJson(std::string_view text, std::string_view where) {
  const Json json = Json::parse(text, nullptr, false);
  const auto refuse = [&](std::string_view why) {
    return Error{fmt::format("{}: not a rank's digest: {}", where, why)};
  };
  if (json.is_discarded() || !json.is_object()) return refuse("no whole JSON object");
  std::string error;
  int version = 0;
  Reader reader(json, error);
  reader("version", version);
  if (error.empty() && version != kVersion) {
    error = fmt::format("it has version {}, and this trainprof reads {}", version, kVersion);
  }
  RankDigest digest;
  reader.Read(digest);
  if (error.empty()) error = ErrorIn(digest);
  if (!error.empty()) return refuse(error);
  return digest;
}

}  // namespace trainprof
