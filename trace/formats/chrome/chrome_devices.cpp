// Which tracks of a Chrome trace are a device's although no row there is of a kind that we know:
// accelerators that came after us, or other profilers. What they did must be counted, not taken for
// a host thread's doing.
#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/formats/chrome/chrome_tables.h"

namespace trainprof {
namespace {

// "rank 3: Ascend Hardware", "rank 3, GPU 0": what our own files of several ranks put before.
std::string_view WithoutRank(std::string_view text) {
  if (!text.starts_with("rank ")) return text;
  const size_t end = text.find_first_not_of("0123456789", 5);
  if (end == 5 || end == std::string_view::npos) return text;
  if (!text.substr(end).starts_with(", ") && !text.substr(end).starts_with(": ")) return text;
  return text.substr(end + 2);
}

// "GPU", "NPU", "XPU", ...: any processing unit but the CPU; and the names of those that are called
// otherwise.
bool IsDeviceWord(std::string_view word) {
  constexpr std::string_view kWords[] = {"MTIA", "MLU", "GCU", "DCU", "Gaudi", "Ascend"};
  if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
  return word.size() == 3 && word.ends_with("PU") && word[0] >= 'A' && word[0] <= 'Z' &&
         word != "CPU";
}

// "GPU 0", "NPU", "MTIA:1"; a label may lack the number.
bool NamesDevice(std::string_view text, bool may_lack_number) {
  text = WithoutRank(text);
  const size_t last = text.find_last_not_of(' ');
  text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  if (text == "Ascend Hardware") return true;
  if (text.starts_with("/device:")) return !text.starts_with("/device:CPU");
  const size_t word_end = text.find_first_of(" :_-0123456789");
  if (!IsDeviceWord(text.substr(0, word_end))) return false;
  if (word_end == std::string_view::npos) return may_lack_number;
  const std::string_view number = text.substr(word_end);
  const size_t digits = number.find_first_not_of(" :_-");
  return digits != std::string_view::npos &&
         number.find_first_not_of("0123456789", digits) == std::string_view::npos;
}

bool NamesStream(std::string_view name) {
  constexpr std::string_view kStream = "stream ";
  if (name.size() <= kStream.size() || std::tolower(name[0]) != 's') return false;
  return name.substr(1).starts_with(kStream.substr(1)) && std::isdigit(name[kStream.size()]) != 0;
}

// By track: whether its rows are all of unknown categories.
std::vector<bool> TracksOfUnknown(const Trace& trace) {
  const RangeTable& ranges = trace.ranges;
  std::vector<bool> is_unknown(trace.tracks.size(), false);
  for (size_t row = 0; row < ranges.size(); ++row) {
    if (ranges.kind[row] == RangeKind::kOther) is_unknown[Index(ranges.track[row])] = true;
  }
  for (size_t row = 0; row < ranges.size(); ++row) {
    const RangeKind kind = ranges.kind[row];
    if (kind != RangeKind::kOther && kind != RangeKind::kDeviceRow) {
      is_unknown[Index(ranges.track[row])] = false;
    }
  }
  for (const TrackId track : trace.api.track) is_unknown[Index(track)] = false;
  return is_unknown;
}

// By track, of those asked for: rows that carry the id of a launch, less the others.
std::vector<int64_t> LaunchedLessOthers(const Trace& trace, const std::vector<bool>& is_asked) {
  const RangeTable& ranges = trace.ranges;
  std::vector<int64_t> launched(trace.tracks.size(), 0);
  std::vector<std::pair<int64_t, TrackId>> ids;
  const StringId key = trace.strings.Find("correlation");
  for (size_t row = 0; row < ranges.size() && key != kEmptyString; ++row) {
    CancelPoint(row);
    const TrackId track = ranges.track[row];
    if (!is_asked[Index(track)]) continue;
    const auto id = trace.args.Find(ranges.args[row], key);
    if (id && id->type == ArgValue::Type::kInt) {
      ids.emplace_back(id->integer, track);
    } else {
      --launched[Index(track)];
    }
  }
  std::sort(ids.begin(), ids.end());
  std::vector<bool> is_launch(ids.size(), false);
  for (size_t row = 0; row < trace.api.size() && !ids.empty(); ++row) {
    CancelPoint(row);
    if (!StartsWork(trace.api.kind[row])) continue;
    const int64_t id = trace.api.correlation[row];
    auto it = std::lower_bound(ids.begin(), ids.end(), std::pair(id, TrackId{0}));
    // Once marked, all of that id are.
    for (; it != ids.end() && it->first == id && !is_launch[it - ids.begin()]; ++it) {
      is_launch[it - ids.begin()] = true;
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) launched[Index(ids[i].second)] += is_launch[i] ? 1 : -1;
  return launched;
}

}  // namespace

// A track of rows of unknown categories alone is a device's where its process or its own name says
// so, or where its rows carry the ids of launches on other tracks.
void ChromeTables::FindDeviceTracks() {
  Trace& trace = builder_.trace();
  RangeTable& ranges = trace.ranges;
  const std::vector<bool> is_unknown = TracksOfUnknown(trace);
  if (std::find(is_unknown.begin(), is_unknown.end(), true) == is_unknown.end()) return;
  const std::vector<int64_t> launched = LaunchedLessOthers(trace, is_unknown);
  std::vector<TrackId> becomes(trace.tracks.size(), kNoTrack);
  for (uint32_t i = 0; i < trace.tracks.size(); ++i) {
    Track& track = trace.tracks[i];
    if (!is_unknown[i] || track.kind != TrackKind::kThread) continue;
    const Process& process = trace.processes[Index(track.process)];
    const std::string_view labels = WithoutRank(trace.Text(process.labels));
    const bool is_named = labels != "CPU" && (NamesDevice(labels, true) ||
                                              NamesDevice(trace.Text(process.name), false) ||
                                              NamesStream(trace.Text(track.name)));
    if (!is_named && launched[i] <= 0) continue;
    const TrackId stream = builder_.FindStream(track.process, track.tid);
    becomes[i] = stream != kNoTrack ? stream : TrackId{i};
    if (stream == kNoTrack) track.kind = TrackKind::kStream;
  }
  for (size_t row = 0; row < ranges.size(); ++row) {
    const TrackId stream = becomes[Index(ranges.track[row])];
    if (stream == kNoTrack) continue;
    ranges.kind[row] = RangeKind::kDeviceRow;
    ranges.track[row] = stream;
  }
}

}  // namespace trainprof
