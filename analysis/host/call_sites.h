// Where in the user's source an event came from, as far as the trace can tell.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/host/openings.h"
#include "analysis/host/same_callers.h"
#include "trace/tables/trace.h"

namespace trainprof {

// A place in the user's code. Without stacks in the trace, `file` is empty and `function` names the
// operator or the user's range around the event.
struct Site {
  std::string file;
  int64_t line = 0;
  std::string function;
  // The outermost operator inside the user's line: "aten::item", "at::Tensor::item"; the range that it opens.
  std::string op;
  int64_t count = 0;  // events from here

  bool operator==(const Site&) const = default;
  bool SamePlace(const Site& other) const {
    return file == other.file && line == other.line && function == other.function && op == other.op;
  }
};

// Finds sites by the stack that a call itself recorded, else by the ranges around it: recorded
// Python frames, an operator's stack; else by the stacks of calls of its kind, else by names. The user's frame is the innermost
// outside of torch, CUDA, the system's libraries and installed packages.
class SiteFinder {
 public:
  explicit SiteFinder(const Trace& trace)
      : trace_(trace), openings_(trace), callers_(trace) {}  // trace must outlive it

  // O(log n + depth of nesting).
  Site Find(TrackId thread, TraceTime at) const;
  // Where a range itself is opened, `op` being its name; else what Find() says of its begin.
  Site FindRange(Row range) const;
  // Of a row of trace.api.
  Site FindCall(Row call) const;
  // Of many, as AddSite() counts them; kNoRow is of none. Fast where they come in the order of time.
  std::vector<Site> FindCalls(std::span<const Row> calls) const;
  // The same of the calls that launched these rows of trace.device_ops, as far as they are known.
  std::vector<Site> FindLaunches(std::span<const Row> ops) const;
  // By the call's own stack alone, or those of calls of the same kind (SameCallers); false: they tell of no place of
  // the user's.
  bool FindInStacks(Row call, Site& site) const;

 private:
  friend class SiteTally;
  bool UserFrameOf(Row range, Site& site) const;
  void SetPlace(const CallFrame& frame, Site& site) const;

  const Trace& trace_;
  Openings openings_;
  SameCallers callers_;
};

// By the frames of one stack; false: none of them is a place of the user's.
bool SiteInStack(const Trace& trace, StackId stack, Site& site);

// Adds `site` to a list, merging equal places; keeps the list short by the count at the end.
void AddSite(std::vector<Site>& sites, const Site& site);
// Counts the sites of many moments: what AddSite() makes of each by itself, for a tenth of the time where they come in
// order of time and often from the same places.
class SiteTally {
 public:
  // Keeps references.
  SiteTally(const Trace& trace, const SiteFinder& sites) : trace_(trace), sites_(sites) {}

  void Add(TrackId thread, TraceTime at);
  void AddCall(Row call);  // of trace.api
  // In the order in which they came first.
  std::vector<Site> Take() &&;

 private:
  static constexpr size_t kNoSite = SIZE_MAX;
  // A range that was met, by what is around it (0: nothing), its name and its stack: a number for all alike.
  struct Met {
    uint64_t around;
    StringId name;
    StackId stack;
    RangeKind kind;
    bool operator==(const Met&) const = default;
  };
  struct HashOfMet {
    size_t operator()(const Met& met) const {
      const uint64_t own = uint64_t{Index(met.name)} << 32 | static_cast<uint64_t>(met.stack);
      return (met.around ^ own * 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93 >> 7;
    }
  };

  Row RangeAt(TrackId thread, TraceTime at);
  size_t IndexOf(const Site& site);
  uint64_t MetOf(Row range);
  size_t IndexAt(TrackId thread, TraceTime at);
  size_t IndexInStack(Row call);
  void Count(size_t index);

  const Trace& trace_;
  const SiteFinder& sites_;
  std::vector<Site> found_;    // some may count nothing
  std::vector<size_t> order_;  // of those that do
  std::unordered_map<Met, uint64_t, HashOfMet> met_;
  std::vector<size_t> site_of_met_{kNoSite};           // by that number; kNoSite: not asked yet
  std::unordered_map<StackId, size_t> site_of_stack_;  // kNoSite: that of its ranges
  // Of the thread that was asked for last: the last range that begins no later than the moment.
  TrackId thread_ = kNoTrack;
  uint32_t after_ = 0;
  // The range that was met last, and those around it, outermost first, with their numbers.
  std::vector<std::pair<Row, uint64_t>> open_;
  std::vector<Row> inner_;  // room for those inside of these
};

// Places with a line first, then most events; equal counts by place, so that the output is stable.
void SortSites(std::vector<Site>& sites);

// The innermost range on a thread that covers `at`, or kNoRow; those around it are its parents.
// O(log n + depth of nesting).
Row InnermostRange(const RangeTable& ranges, TrackId thread, TraceTime at);

}  // namespace trainprof
