// Which records of devices have no times because the program ended while their work was under way, so
// that nothing is lost: the last flush delivers them as they are.
#pragma once

#include <cstdint>

#include "trace/recording/wire/rows.h"

namespace trainprof::collectors {

// Made of zeros. A stream does its work in order, and correlation ids count up: a record was under way
// where no later work of its stream has ended, and the host has not seen its stream or context end.
// Notes come from one thread, in any order.
class InFlight {
 public:
  // What comes without times from here on may be under way.
  void ProgramEnds() { ends_ = true; }

  // A row with times.
  void Note(const recording::DeviceRow& row) {
    constexpr uint8_t kStreamSync = 3;  // CUpti_ActivitySynchronizationType
    constexpr uint8_t kContextSync = 4;
    const bool sync = row.type == recording::DeviceRowType::kSync;
    if (recording::IsDeviceWork(row.type) || (sync && row.detail == kStreamSync)) {
      Raise(&stream_ended_[PlaceOf(row)], row.correlation);
    } else if (sync && row.detail == kContextSync) {
      Raise(&context_ended_[row.context % kContexts], row.correlation);
    }
  }

  // A row without times. False: it is lost.
  bool Take(const recording::DeviceRow& row) {
    if (!ends_ || !recording::IsDeviceWork(row.type)) return false;
    Pending* const last = count_ > 0 ? &pending_[count_ - 1] : nullptr;
    const Pending pending{row.correlation, PlaceOf(row), row.context % kContexts, 1};
    if (last != nullptr && last->correlation == pending.correlation &&
        last->stream == pending.stream && last->context == pending.context) {
      ++last->rows;  // nodes of a graph
      return true;
    }
    if (count_ == kMostPending) return false;
    pending_[count_++] = pending;
    return true;
  }

  // Of the rows taken: those that were under way, and those that were not. Once, after the last note.
  // Calls under_way(correlation) for the launches of the former.
  struct Rows {
    uint64_t in_flight;
    uint64_t lost;
  };
  template <class UnderWay>
  Rows Settle(UnderWay under_way) {
    Rows rows{};
    for (uint32_t i = 0; i < count_; ++i) {
      const Pending& pending = pending_[i];
      // A graph's nodes share their launch's id: some may have ended.
      const bool ended = IsOlder(pending.correlation, stream_ended_[pending.stream]) ||
                         IsOlder(pending.correlation, context_ended_[pending.context]);
      (ended ? rows.lost : rows.in_flight) += pending.rows;
      if (!ended) under_way(pending.correlation);
    }
    count_ = 0;
    return rows;
  }

 private:
  // As many as a queue of the driver's holds, several times. Streams that share a place speak for each
  // other: some work under way is then taken for lost, never the reverse.
  static constexpr uint32_t kMostPending = 8 * 1024;
  static constexpr uint32_t kStreams = 1024;
  static constexpr uint32_t kContexts = 64;

  struct Pending {
    uint32_t correlation;
    uint32_t stream;  // places
    uint32_t context;
    uint32_t rows;
  };

  // 0: none has ended.
  static bool IsOlder(uint32_t correlation, uint32_t ended) {
    return ended != 0 && static_cast<int32_t>(correlation - ended) < 0;
  }
  static void Raise(uint32_t* ended, uint32_t correlation) {
    if (*ended == 0 || IsOlder(*ended, correlation)) *ended = correlation;
  }
  static uint32_t PlaceOf(const recording::DeviceRow& row) {
    return (row.stream + 131 * row.context) % kStreams;
  }

  bool ends_;
  uint32_t count_;
  uint32_t stream_ended_[kStreams];
  uint32_t context_ended_[kContexts];
  Pending pending_[kMostPending];
};

}  // namespace trainprof::collectors
