// What names say (trace/base/names.h), found once per distinct name and kept beside the strings.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/base/ids.h"
#include "trace/base/names.h"
#include "trace/base/string_table.h"

namespace trainprof {

struct NameFacts {
  uint8_t is_known : 1 = 0;  // set in all that is kept
  uint8_t is_step : 1 = 0;
  uint8_t is_profiler_step : 1 = 0;
  uint8_t is_io : 1 = 0;
  uint8_t is_garbage_collection : 1 = 0;
  uint8_t is_communication : 1 = 0;  // of a kernel
  uint8_t clears_gradients : 1 = 0;
  Phase user_phase : 4 = Phase::kNone;   // where a user's own range has the name
  Phase torch_phase : 4 = Phase::kNone;  // where any other range has it
  ApiKind api : 4 = ApiKind::kOther;
  CopyDirection direction : 4 = CopyDirection::kUnknown;
  uint8_t unused = 0;

  // A step or a torch phase: the name of no plain operator.
  bool IsTorchAnnotation() const {
    return is_step != 0 || torch_phase == Phase::kInputWait || torch_phase == Phase::kOptimizer ||
           torch_phase == Phase::kRankWait;
  }
};
static_assert(sizeof(NameFacts) == sizeof(uint32_t));

// O(length).
NameFacts NameFactsOf(std::string_view name);

// The facts of a string table's names, each found when it is first asked for: most strings are no
// names. May be asked by several threads at once.
class NameFactsTable {
 public:
  // Strings that are interned later are known as well, but not kept.
  void Cover(const StringTable& strings) { facts_.resize(strings.size()); }
  size_t covered() const { return facts_.size(); }

  [[gnu::always_inline]] NameFacts Of(const StringTable& strings, StringId name) const {
    if (Index(name) >= facts_.size()) [[unlikely]] {
      return NameFactsOf(strings.View(name));
    }
    const std::atomic_ref<uint32_t> kept(facts_[Index(name)]);
    const auto facts = std::bit_cast<NameFacts>(kept.load(std::memory_order_relaxed));
    if (facts.is_known != 0) [[likely]] {
      return facts;
    }
    return Find(strings, name);
  }
  size_t size_bytes() const { return facts_.capacity() * sizeof(uint32_t); }

 private:
  // Apart, as few are asked for the first time.
  [[gnu::cold, gnu::noinline]] NameFacts Find(const StringTable& strings, StringId name) const {
    const NameFacts found = NameFactsOf(strings.View(name));
    std::atomic_ref(facts_[Index(name)])
        .store(std::bit_cast<uint32_t>(found), std::memory_order_relaxed);
    return found;
  }

  mutable std::vector<uint32_t> facts_;  // by StringId; 0: not asked yet
};

}  // namespace trainprof
