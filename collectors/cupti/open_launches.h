// The launches that no record of the device has answered yet. A window's end waits for them: CUPTI
// would stamp the end of what is under way when recording goes on, minutes later.
#pragma once

#include <atomic>
#include <cstdint>

namespace trainprof::collectors {

// Made of zeros. Notes come from one thread at a time, in any order, and may come again: a kernel's record
// may come before that of its launch. Correlation ids count up, so that each of the last kPlaces has a place; what is
// older is given up.
class OpenLaunches {
 public:
  static constexpr uint32_t kPlaces = 32 * 1024;

  void Launched(uint32_t correlation) {
    Place* place = PlaceOf(correlation);
    if (place == nullptr || place->state != State::kNone || IsCaptured(correlation)) return;
    place->state = State::kLaunched;
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  void Answered(uint32_t correlation) {
    Place* place = PlaceOf(correlation);
    if (place == nullptr) return;
    if (place->state == State::kLaunched) count_.fetch_sub(1, std::memory_order_relaxed);
    place->state = State::kAnswered;
  }
  // Nothing will answer what was launched.
  void Forget() { ForgetBetween(0, UINT32_MAX); }
  // Between the two calls, which one thread makes as a rule, what is launched, by any thread, may become
  // a graph's node, and is waited for no longer.
  void CaptureBegan(uint32_t correlation, uint32_t thread) {
    for (const Capture& capture : captures_) {
      if (capture.begin == correlation) return;  // noted before
    }
    captures_[captures_begun_++ % kCaptures] = {correlation, 0, thread};
    ForgetBetween(correlation, UINT32_MAX);
  }
  void CaptureEnded(uint32_t correlation, uint32_t thread) {
    Capture* ended = nullptr;
    for (Capture& capture : captures_) {
      if (capture.begin != 0 && capture.end == correlation) return;  // noted before
      if (capture.begin == 0 || capture.end != 0) continue;
      if (ended == nullptr || capture.thread == thread) ended = &capture;
    }
    if (ended != nullptr) {
      ended->end = correlation;
    } else {
      ForgetBetween(0, correlation);  // began before calls were recorded
    }
  }
  // To be asked by any thread.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  enum class State : uint32_t { kNone, kLaunched, kAnswered };
  struct Place {
    uint32_t correlation;
    State state;
  };

  // By the correlation ids of its calls.
  struct Capture {
    uint32_t begin;  // 0: none
    uint32_t end;    // 0: goes on
    uint32_t thread;
  };
  static constexpr uint32_t kCaptures = 16;

  bool IsCaptured(uint32_t correlation) const {
    for (const Capture& capture : captures_) {
      if (capture.begin == 0 || correlation < capture.begin) continue;
      if (capture.end == 0 || correlation < capture.end) return true;
    }
    return false;
  }
  void ForgetBetween(uint32_t begin, uint32_t end) {
    for (Place& place : places_) {
      const bool is_between = place.correlation > begin && place.correlation < end;
      if (is_between && place.state == State::kLaunched) Answered(place.correlation);
    }
  }

  // nullptr for ids that a younger one has followed.
  Place* PlaceOf(uint32_t correlation) {
    Place& place = places_[correlation % kPlaces];
    if (place.correlation == correlation) return &place;
    if (static_cast<int32_t>(correlation - place.correlation) < 0) return nullptr;
    if (place.state == State::kLaunched) count_.fetch_sub(1, std::memory_order_relaxed);
    place = {correlation, State::kNone};
    return &place;
  }

  Place places_[kPlaces];
  Capture captures_[kCaptures];
  uint32_t captures_begun_;
  std::atomic<uint32_t> count_;
};

}  // namespace trainprof::collectors
