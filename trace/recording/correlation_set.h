// A set of correlation ids. A process counts them up from 1, so that a bit an id serves; bits are
// in pages, so that ids that are damaged, and lie anywhere, take little room, too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace trainprof::recording {

class CorrelationSet {
 public:
  // O(1).
  void Add(uint32_t id) {
    const uint32_t page = id / kPageBits;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Page>();
    (*pages_[page])[id % kPageBits / 64] |= uint64_t{1} << id % 64;
  }
  bool Contains(uint32_t id) const {
    const uint32_t page = id / kPageBits;
    return page < pages_.size() && pages_[page] &&
           ((*pages_[page])[id % kPageBits / 64] >> id % 64 & 1) != 0;
  }
  bool empty() const { return pages_.empty(); }

 private:
  static constexpr uint32_t kPageBits = 4096;
  using Page = std::array<uint64_t, kPageBits / 64>;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace trainprof::recording
