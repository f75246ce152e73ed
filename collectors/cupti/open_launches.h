// The launches that no record of the device has answered yet. A window's end waits for them: CUPTI
// would stamp the end of what is under way when recording goes on, minutes later.
#pragma once

#include <atomic>
#include <cstdint>

namespace trainprof::collectors {

// Made of zeros. Notes come from one thread at a time, in any order: a kernel's record may come before
// that of its launch. Correlation ids count up, so that each of the last kPlaces has a place; what is
// older is given up.
class OpenLaunches {
 public:
  static constexpr uint32_t kPlaces = 32 * 1024;

  void Launched(uint32_t correlation) {
    Place* place = PlaceOf(correlation);
    if (place == nullptr || place->state != State::kNone) return;
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
  void Forget() {
    for (Place& place : places_) {
      if (place.state == State::kLaunched) Answered(place.correlation);
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
  std::atomic<uint32_t> count_;
};

}  // namespace trainprof::collectors
