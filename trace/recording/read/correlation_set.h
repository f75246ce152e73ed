// A set of correlation ids. A process counts them up from 1, so that a bit an id serves; bits are
// in pages, so that ids that are damaged, and lie anywhere, take little room, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace trainprof::recording {

class CorrelationSet {
 public:
  CorrelationSet() = default;
  CorrelationSet(const CorrelationSet&) = delete;
  CorrelationSet& operator=(const CorrelationSet&) = delete;

  // O(1); neighbours meet the same page without looking for it.
  void Add(uint32_t id) {
    if (last_ == nullptr || id / kPageBits != last_number_) {
      last_number_ = id / kPageBits;
      last_ = &pages_[last_number_];
    }
    (*last_)[id % kPageBits / 64] |= uint64_t{1} << id % 64;
  }
  bool Contains(uint32_t id) const {
    const Page* page = last_;
    if (page == nullptr || id / kPageBits != last_number_) {
      const auto found = pages_.find(id / kPageBits);
      if (found == pages_.end()) return false;
      page = &found->second;
    }
    return ((*page)[id % kPageBits / 64] >> id % 64 & 1) != 0;
  }
  bool empty() const { return pages_.empty(); }
  // Whether each of them is in one of those.
  bool IsWithin(const CorrelationSet& a, const CorrelationSet& b) const {
    const auto bits = [](const CorrelationSet& set, uint32_t number) {
      const auto found = set.pages_.find(number);
      return found == set.pages_.end() ? Page{} : found->second;
    };
    for (const auto& [number, page] : pages_) {
      const Page of_a = bits(a, number);
      const Page of_b = bits(b, number);
      for (size_t i = 0; i < page.size(); ++i) {
        if ((page[i] & ~(of_a[i] | of_b[i])) != 0) return false;
      }
    }
    return true;
  }

 private:
  static constexpr uint32_t kPageBits = 4096;
  using Page = std::array<uint64_t, kPageBits / 64>;
  std::unordered_map<uint32_t, Page> pages_;  // all zero when made
  Page* last_ = nullptr;                      // that was added to; places in a map stay
  uint32_t last_number_ = 0;
};

}  // namespace trainprof::recording
