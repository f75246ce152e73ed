// Merges sorted sequences without making a list of them all: who is first is asked over and over, and each time
// one sequence goes on.
//
//   Tournament merge(sequences.size());
//   for (uint32_t i = 0; i < sequences.size(); ++i) merge.Set(i, key of its first);   // kDone: it is empty
//   merge.Start();
//   for (; !merge.Done(); merge.Advance(next key of merge.First())) ...
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace trainprof {

class Tournament {
 public:
  // The key of a sequence that has ended; no other's.
  static constexpr int64_t kDone = INT64_MAX;

  // Of two sequences whose keys are the same, whether the first one's next is first: a strict weak order.
  using Before = std::function<bool(uint32_t, uint32_t)>;

  // `before`: null: of equal keys that of the sequence with the least number is first.
  explicit Tournament(size_t sequences, Before before = {})
      : leaves_(std::bit_ceil(static_cast<uint32_t>(std::max<size_t>(sequences, 1)))),
        before_(std::move(before)),
        keys_(leaves_, kDone),
        first_(2 * size_t{leaves_}) {}

  void Set(uint32_t sequence, int64_t key) { keys_[sequence] = key; }
  // O(sequences).
  void Start() {
    for (uint32_t leaf = 0; leaf < leaves_; ++leaf) first_[leaves_ + leaf] = leaf;
    for (uint32_t i = leaves_ - 1; i > 0; --i)
      first_[i] = FirstOf(first_[2 * i], first_[2 * i + 1]);
  }

  bool Done() const { return keys_[First()] == kDone; }
  // The sequence whose key is least; of several what `before` says, or the one with the least number.
  uint32_t First() const { return first_[1]; }
  // Its next key, not less than the last. O(log(sequences)).
  void Advance(int64_t key) {
    uint32_t first = First();
    keys_[first] = key;
    for (uint32_t i = leaves_ + first; i > 1; i /= 2) {
      first = FirstOf(first_[i ^ 1], first);
      first_[i / 2] = first;
    }
  }

 private:
  uint32_t FirstOf(uint32_t a, uint32_t b) const {
    if (keys_[a] != keys_[b]) return keys_[a] < keys_[b] ? a : b;
    if (before_ && keys_[a] != kDone) {
      if (before_(a, b)) return a;
      if (before_(b, a)) return b;
    }
    return std::min(a, b);
  }

  uint32_t leaves_;  // a power of two
  Before before_;
  std::vector<int64_t> keys_;
  std::vector<uint32_t>
      first_;  // of a match the winner: at i that of 2 i and 2 i + 1; leaves stand behind
};

}  // namespace trainprof
