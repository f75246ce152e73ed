#include "analysis/job/clocks.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// What ends of one rank say beside another's, over one communicator.
struct OffsetSample {
  double at = 0;     // by the other's clock, ns
  double ahead = 0;  // ns
};

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

template <class Get>
double MedianOf(std::span<const OffsetSample> samples, Get get) {
  std::vector<double> values;
  for (const OffsetSample& sample : samples) values.push_back(get(sample));
  return Median(values);
}

// Of `samples` by time. The drift is that from the first third's median to the last's.
ClockOffset OffsetOf(uint32_t beside, std::span<const OffsetSample> samples) {
  constexpr size_t kEnoughForDrift = 12;
  ClockOffset offset{beside, {}, 0, {}, static_cast<int64_t>(samples.size())};
  const auto at = [](const OffsetSample& sample) { return sample.at; };
  const auto ahead = [](const OffsetSample& sample) { return sample.ahead; };
  const double middle = MedianOf(samples, at);
  if (samples.size() >= kEnoughForDrift) {
    const auto first = samples.first(samples.size() / 3);
    const auto last = samples.last(samples.size() / 3);
    const double time = MedianOf(last, at) - MedianOf(first, at);
    if (time > 0) offset.drift = (MedianOf(last, ahead) - MedianOf(first, ahead)) / time;
  }
  const auto level = [&](const OffsetSample& s) {
    return s.ahead - offset.drift * (s.at - middle);
  };
  const double median = MedianOf(samples, level);
  constexpr double kMost = 9e18;  // llround's
  offset.ahead = {std::llround(std::clamp(median, -kMost, kMost))};
  const auto off = [&](const OffsetSample& sample) { return std::abs(level(sample) - median); };
  offset.spread = {std::llround(std::min(MedianOf(samples, off), kMost))};
  return offset;
}

// Of a communicator: each rank beside its lowest.
struct Link {
  uint32_t rank = 0;
  ClockOffset offset;
};

}  // namespace

int64_t Apart(int64_t a, int64_t b) {
  constexpr __int128 kMost = INT64_MAX;
  return static_cast<int64_t>(std::clamp<__int128>(static_cast<__int128>(a) - b, -kMost, kMost));
}

std::vector<std::optional<ClockOffset>> ClockOffsets(const Meetings& meetings,
                                                     std::span<const int64_t> base_ns) {
  const size_t ranks = base_ns.size();
  // Ends beside those of the lowest rank that is there, which is nearly always the communicator's.
  std::vector<std::vector<std::vector<OffsetSample>>> samples(meetings.communicators.size());
  for (size_t c = 0; c < samples.size(); ++c) {
    samples[c].resize(meetings.communicators[c].ranks.size());
  }
  for (size_t m = 0; m < meetings.meetings.size(); ++m) {
    CancelPoint(m);
    const Meeting& meeting = meetings.meetings[m];
    const Communicator& communicator = meetings.communicators[meeting.communicator];
    const std::span<const Attendance> present = meetings.Of(meeting);
    const Attendance& lowest = present.front();
    if (!communicator.ends_together || lowest.rank != communicator.ranks.front()) continue;
    for (const Attendance& each : present.subspan(1)) {
      const auto place =
          std::lower_bound(communicator.ranks.begin(), communicator.ranks.end(), each.rank);
      const auto time = [&](const Attendance& of) {
        return static_cast<__int128>(of.when.end.ns) + base_ns[of.rank];
      };
      samples[meeting.communicator][static_cast<size_t>(place - communicator.ranks.begin())]
          .push_back({static_cast<double>(lowest.when.end.ns),
                      static_cast<double>(time(each) - time(lowest))});
    }
  }
  std::vector<std::vector<Link>> links(ranks);  // by the lowest rank and by the other one
  for (size_t c = 0; c < samples.size(); ++c) {
    const std::vector<uint32_t>& members = meetings.communicators[c].ranks;
    for (size_t i = 1; i < members.size(); ++i) {
      std::vector<OffsetSample>& each = samples[c][i];
      if (each.empty()) continue;
      std::sort(each.begin(), each.end(),
                [](const OffsetSample& a, const OffsetSample& b) { return a.at < b.at; });
      const ClockOffset offset = OffsetOf(members[0], each);
      links[members[0]].push_back({members[i], offset});
      ClockOffset back = offset;
      back.beside = members[i];
      back.ahead = {-offset.ahead.ns};
      back.drift = -offset.drift;
      links[members[i]].push_back({members[0], back});
    }
  }
  std::vector<std::optional<ClockOffset>> offsets(ranks);
  for (uint32_t start = 0; start < ranks; ++start) {
    if (offsets[start] || links[start].empty()) continue;
    offsets[start] = ClockOffset{start, {}, 0, {}, 0};
    std::deque<uint32_t> reached = {start};
    for (; !reached.empty(); reached.pop_front()) {
      const ClockOffset from = *offsets[reached.front()];
      for (const Link& link : links[reached.front()]) {
        if (offsets[link.rank]) continue;
        const bool is_start = from.collectives == 0;
        offsets[link.rank] =
            ClockOffset{start,
                        {Apart(from.ahead.ns, -link.offset.ahead.ns)},
                        from.drift + link.offset.drift,
                        {Apart(from.spread.ns, -link.offset.spread.ns)},
                        is_start ? link.offset.collectives
                                 : std::min(from.collectives, link.offset.collectives)};
        reached.push_back(link.rank);
      }
    }
  }
  return offsets;
}

}  // namespace trainprof
