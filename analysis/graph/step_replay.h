// How long each step took, by its graph, and how long it would have taken after changes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "analysis/graph/what_if.h"
#include "analysis/steps/steps.h"

namespace trainprof {

class StepReplay {
 public:
  // `graph` was made for `steps`. `by_device`: a step ends when the last operation launched in it does,
  // else when its thread ends it. Keeps references. One replay.
  StepReplay(const Trace& trace, const Steps& steps, const Graph& graph, bool by_device);

  ~StepReplay();
  StepReplay(const StepReplay&) = delete;
  StepReplay& operator=(const StepReplay&) = delete;

  // Of the steps that count, in ns. The first behind the begin, and behind each gap, does not where there
  // are enough others: what was under way before is not known. Without steps the whole run is one.
  std::span<const int64_t> recorded() const { return recorded_; }
  // Their Step::number; the run as a whole is 0.
  std::span<const int64_t> numbers() const { return numbers_; }
  double MeanNs() const { return MeanOf(recorded_); }
  // Of the same steps. One replay; two where operations of several streams change places. It takes room, 16 B an edge or
  // so, and leaves it to those to come. Of several at once some wait for that of others where it is large: kMostRoomBytes.
  std::vector<int64_t> After(std::span<const Change* const> changes,
                             const Assumption& assumption) const;
  // By how much the mean step is off, as a share of it, when the graph is replayed without what nothing
  // explains: how far its predictions can be trusted. 0 without steps.
  double identity_error() const { return identity_error_; }

  // Gives that room back. Of several replays at once, when all have ended.
  void Forget() const;

  // Of all rooms, beyond the first.
  static constexpr size_t kMostRoomBytes = size_t{64} << 20;

  static double MeanOf(std::span<const int64_t> values);

 private:
  struct Room;
  class RoomHeld;
  // An edge between streams that shows nothing but who was ready first: the other one's operation had begun by then.
  struct Order {
    NodeId node = 0;
    EdgeId edge = 0;
  };
  std::vector<Order> FindOrders() const;
  // Without those edges whose node is now ready before the other operation begins: it goes first. False where all stay.
  bool DropOvertaken(const std::vector<int64_t>& ends, Costs& costs) const;
  std::vector<int64_t> TimesOf(const std::vector<int64_t>& ends) const;

  const Trace& trace_;
  const Steps& steps_;
  const Graph& graph_;
  const bool by_device_;
  std::vector<bool> counts_;  // by step
  std::vector<int64_t> recorded_;
  std::vector<int64_t> numbers_;
  double identity_error_ = 0;
  std::vector<Order> orders_;
  // Of a replay: taken anew each time, the system would clear it each time.
  mutable std::mutex mutex_;                          // of rooms_
  mutable std::condition_variable is_left_;           // a room
  mutable std::vector<std::unique_ptr<Room>> rooms_;  // that no replay is in
  mutable size_t taken_ = 0;                          // the others
};

}  // namespace trainprof
