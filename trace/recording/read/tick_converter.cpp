#include "trace/recording/read/tick_converter.h"

#include <algorithm>

namespace trainprof::recording {
namespace {

// Samples closer than this (0.2 to 1 ms) add noise, not knowledge: the best one of them stays.
constexpr uint64_t kClosestTicks = uint64_t{1} << 20;
// A bracket so many times wider than the median one was interrupted between its readings.
constexpr uint64_t kWidestBracket = 4;
// Real time stamp counters run at 0.1 to 10 ticks a ns; anything else is damage.
constexpr int64_t kFastest = 10;
constexpr int64_t kFarthestNs = (int64_t{1} << 61);

bool Plausible(const ClockSample& s) {
  return s.monotonic_ns >= 0 && s.monotonic_ns < kFarthestNs && s.ticks < uint64_t{1} << 62 &&
         s.bracket_ticks < uint64_t{1} << 40;
}

// Whether the rate from a to b (a.ticks < b.ticks) is that of a real counter.
bool Agree(const ClockSample& a, const ClockSample& b) {
  const auto ticks = static_cast<__int128>(b.ticks - a.ticks);
  const auto ns = static_cast<__int128>(b.monotonic_ns) - a.monotonic_ns;
  // The brackets blur samples that lie close together.
  const __int128 blur = static_cast<__int128>(a.bracket_ticks) + b.bracket_ticks;
  return ns > 0 && ns <= (ticks + blur) * kFastest && ticks <= (ns + blur) * kFastest;
}

uint64_t MedianBracket(std::vector<ClockSample> samples) {
  if (samples.empty()) return 0;
  auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end(),
                   [](const auto& a, const auto& b) { return a.bracket_ticks < b.bracket_ticks; });
  return middle->bracket_ticks;
}

// Rate between two samples applied at a distance from the first; floors.
int64_t Interpolate(const ClockSample& a, const ClockSample& b, uint64_t ticks) {
  // Between samples that lie 0.1 s apart 64 bits hold it all, and divide in half the time.
  uint64_t small = 0;
  if (ticks >= a.ticks && b.monotonic_ns >= a.monotonic_ns &&
      !__builtin_mul_overflow(ticks - a.ticks,
                              static_cast<uint64_t>(b.monotonic_ns - a.monotonic_ns), &small) &&
      small <= static_cast<uint64_t>(kFarthestNs)) {
    const auto rise = static_cast<int64_t>(small / (b.ticks - a.ticks));
    return std::clamp(a.monotonic_ns + rise, -kFarthestNs, kFarthestNs);
  }
  const auto run = static_cast<__int128>(b.ticks - a.ticks);
  const auto rise = static_cast<__int128>(b.monotonic_ns - a.monotonic_ns);
  const __int128 product = (static_cast<__int128>(ticks) - static_cast<__int128>(a.ticks)) * rise;
  __int128 quotient = product / run;
  if (product % run < 0) --quotient;
  const __int128 ns = a.monotonic_ns + quotient;
  return static_cast<int64_t>(std::clamp<__int128>(ns, -kFarthestNs, kFarthestNs));
}

}  // namespace

TickConverter::TickConverter(ClockKind kind, std::vector<ClockSample> samples) : kind_(kind) {
  std::erase_if(samples, [](const ClockSample& s) { return !Plausible(s); });
  const uint64_t widest = MedianBracket(samples) * kWidestBracket;
  std::erase_if(samples, [&](const ClockSample& s) { return s.bracket_ticks > widest; });
  const auto before = [](const auto& a, const auto& b) { return a.ticks < b.ticks; };
  if (!std::is_sorted(samples.begin(), samples.end(), before)) {
    std::sort(samples.begin(), samples.end(), before);
  }
  for (const ClockSample& sample : samples) {
    if (samples_.empty()) {
      samples_.push_back(sample);
      continue;
    }
    ClockSample& last = samples_.back();
    if (sample.ticks - last.ticks < kClosestTicks) {
      if (samples_.size() > 1 && sample.bracket_ticks < last.bracket_ticks &&
          Agree(samples_[samples_.size() - 2], sample)) {
        last = sample;
      }
    } else if (Agree(last, sample)) {
      samples_.push_back(sample);
    }
  }
  rate_is_known_ = kind == ClockKind::kMonotonic || samples_.size() > 1;
  if (samples_.size() < 2 || kind == ClockKind::kMonotonic) return;
  uint64_t bracket = 0;
  for (const ClockSample& sample : samples_) bracket = std::max(bracket, sample.bracket_ticks);
  const ClockSample& a = samples_.front();
  const ClockSample& b = samples_.back();
  error_ = {static_cast<int64_t>(static_cast<__int128>(bracket) *
                                 (b.monotonic_ns - a.monotonic_ns) / (2 * (b.ticks - a.ticks)))};
}

size_t TickConverter::SegmentOf(uint64_t ticks) const {
  const auto holds = [&](size_t i) {
    return i + 1 < samples_.size() && samples_[i].ticks <= ticks && ticks < samples_[i + 1].ticks;
  };
  if (holds(last_)) return last_;
  if (holds(last_ + 1)) return ++last_;
  const auto after = std::upper_bound(samples_.begin(), samples_.end(), ticks,
                                      [](uint64_t t, const auto& s) { return t < s.ticks; });
  return last_ = static_cast<size_t>(after - samples_.begin()) - 1;
}

HostTime TickConverter::ToHost(uint64_t ticks) const {
  if (kind_ == ClockKind::kMonotonic || samples_.empty()) {
    return {static_cast<int64_t>(std::min<uint64_t>(ticks, kFarthestNs))};
  }
  const ClockSample& first = samples_.front();
  const ClockSample& last = samples_.back();
  if (samples_.size() == 1) {
    ClockSample next = first;
    next.ticks += 1;
    next.monotonic_ns += 1;
    return {Interpolate(first, next, ticks)};
  }
  if (ticks < first.ticks) return {Interpolate(first, last, ticks)};
  if (ticks >= last.ticks) {
    // From the last sample on, so that time never jumps back there.
    ClockSample next = last;
    next.ticks += last.ticks - first.ticks;
    next.monotonic_ns += last.monotonic_ns - first.monotonic_ns;
    return {Interpolate(last, next, ticks)};
  }
  const size_t i = SegmentOf(ticks);
  return {Interpolate(samples_[i], samples_[i + 1], ticks)};
}

}  // namespace trainprof::recording
