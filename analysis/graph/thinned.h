// A sample of values that come one by one: all of them, later each second one, each fourth one, ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainprof {

class Thinned {
 public:
  void Add(int64_t value) {
    if (seen_++ % step_ != 0) return;
    values_.push_back(value);
    if (values_.size() < kMost) return;
    for (size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
    values_.resize(values_.size() / 2);
    step_ *= 2;
  }
  bool IsEmpty() const { return values_.empty(); }
  // `share`: 0.5 for the median. `otherwise` where there are no values.
  int64_t Quantile(double share, int64_t otherwise) {
    if (values_.empty()) return otherwise;
    const auto at =
        values_.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values_.size() - 1));
    std::nth_element(values_.begin(), at, values_.end());
    return *at;
  }

 private:
  static constexpr size_t kMost = 4096;  // tells a quantile to a hundredth or so
  std::vector<int64_t> values_;
  size_t seen_ = 0;
  size_t step_ = 1;
};

}  // namespace trainprof
