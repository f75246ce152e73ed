// How several ranks share one Chrome trace: each has process ids, flow ids, correlation ids and
// external ids of its own, so that no tool joins an event of one rank to another's. Every renaming
// can be undone: the file's member kMergedMember says what was what (split_ranks.h reads it).
//
// A rank's slot is its place in the file, from 0. Ids become slot * 2^40 + id. Process ids become
// slot * 10,000,000 + pid, so that people can still read them; those that do not fit get free
// numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainprof {

// The top-level member of a file of several ranks.
inline constexpr std::string_view kMergedMember = "trainprofRanks";
// In an event that is kept whole: the slot of its rank.
inline constexpr std::string_view kSlotKey = "trainprof slot";

enum class RankIds : uint8_t { kCorrelation, kExternal, kFlow };

// An argument that holds ids, and the argument that keeps an id that could not be renamed
// reversibly.
struct IdKey {
  std::string_view key;
  std::string_view original_key;
  RankIds ids;
};
inline constexpr IdKey kIdKeys[] = {
    {"correlation", "trainprof correlation", RankIds::kCorrelation},
    {"wait_on_cuda_event_record_corr_id", "trainprof wait_on_cuda_event_record_corr_id",
     RankIds::kCorrelation},
    {"External id", "trainprof External id", RankIds::kExternal},
    {"external id", "trainprof external id", RankIds::kExternal},
};
inline constexpr size_t kCorrelationKey = 0;  // their places in the list
inline constexpr size_t kWaitedRecordKey = 1;
static_assert(kIdKeys[kCorrelationKey].key == "correlation");
static_assert(kIdKeys[kWaitedRecordKey].key == "wait_on_cuda_event_record_corr_id");
// The same for the id of a flow, and for its text where it was no integer.
inline constexpr std::string_view kFlowIdKey = "trainprof id";
inline constexpr std::string_view kFlowTextKey = "trainprof id text";

// Ids of a slot.
inline constexpr int kSlotShift = 40;
// Ids from here on, and negative ones, do not fit: the rank numbers them from here.
inline constexpr int64_t kFirstOddId = int64_t{1} << (kSlotShift - 1);
// CUPTI's "no correlation", kept as it is.
inline constexpr int64_t kNoId = -1;

// The id within its rank, and whether it is the original rather than a number given to it.
struct PlainId {
  int64_t id = 0;
  bool is_original = true;
};
PlainId WithoutSlot(int64_t id);

class RankNamespace {
 public:
  RankNamespace(uint32_t slot, int64_t rank) : slot_(slot), rank_(rank) {}

  uint32_t slot() const { return slot_; }
  int64_t rank() const { return rank_; }
  // Gives `pid` a number that is not in `used`, the pids of the whole file.
  void AddPid(int64_t pid, std::set<int64_t>& used);
  // The number of a pid that was added; false when it was not.
  bool FindPid(int64_t pid, int64_t& renamed) const;
  const std::map<int64_t, int64_t>& pids() const { return pids_; }

  // `fits` turns false when the original cannot be told from the result.
  int64_t Id(RankIds ids, int64_t id, bool& fits);

  // A raw event with the pid and the id of this rank. Pids that are no integers stay.
  std::string RenameEvent(std::string_view json) const;

 private:
  uint32_t slot_;
  int64_t rank_;
  std::map<int64_t, int64_t> pids_;
  std::array<std::unordered_map<int64_t, int64_t>, 3> odd_ids_;
};

// The integer "pid" of a raw event; false when it has none.
bool PidOfEvent(std::string_view json, int64_t& pid);
// The slot that a raw event names; false when it names none.
bool SlotOfEvent(std::string_view json, uint32_t& slot);
// Undoes RenameEvent and takes the slot out. `pids` is by the renamed pid.
std::string OriginalEvent(std::string_view json, const std::map<int64_t, int64_t>& pids);

// The members of a JSON object, or elements of a list, as they stand in `json`: keys without their
// quotes (not decoded), empty for elements. Nothing when `json` is neither.
struct RawMember {
  std::string_view key;
  std::string_view value;
};
std::vector<RawMember> RawMembers(std::string_view json);

}  // namespace trainprof
