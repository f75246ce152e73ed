#include "trace/base/texts_in_order.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "trace/base/parallel.h"

namespace trainprof {
namespace {

constexpr size_t kMostAhead =
    4;  // texts a thread: enough for a piece that takes a few times as long as others

class InOrder {
 public:
  InOrder(size_t count, size_t threads, const std::function<void(std::string&)>& take)
      : count_(count), take_(take), made_(threads * kMostAhead) {}

  // One thread's part.
  void Work(const MakeText& make) {
    std::string text;
    while (const std::optional<size_t> piece = Claim(text)) {
      try {
        make(*piece, text);
        Put(*piece, text);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
        throw;
      }
    }
  }

 private:
  // The next piece, and room for its text; nothing where there is none left.
  std::optional<size_t> Claim(std::string& room) {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [this] { return stop_ || claimed_ == count_ || claimed_ < taken_ + made_.size(); });
    if (stop_ || claimed_ == count_) return std::nullopt;
    if (!spare_.empty()) {
      room = std::move(spare_.back());
      spare_.pop_back();
    }
    return claimed_++;
  }

  // Whoever makes the text that is next takes it, and those that wait behind it.
  void Put(size_t piece, std::string& text) {
    std::unique_lock lock(mutex_);
    SlotOf(piece).emplace(std::move(text));
    if (is_taking_) return;
    is_taking_ = true;
    while (!stop_ && taken_ < count_ && SlotOf(taken_)) {
      std::string next = *std::move(SlotOf(taken_));
      SlotOf(taken_).reset();
      lock.unlock();
      take_(next);
      lock.lock();
      spare_.push_back(std::move(next));
      ++taken_;
      changed_.notify_all();
    }
    is_taking_ = false;
  }

  std::optional<std::string>& SlotOf(size_t piece) { return made_[piece % made_.size()]; }

  const size_t count_;
  const std::function<void(std::string&)>& take_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::string>> made_;  // by piece, those from taken_ on
  std::vector<std::string> spare_;
  size_t claimed_ = 0;
  size_t taken_ = 0;
  bool is_taking_ = false;
  bool stop_ = false;
};

}  // namespace

void MakeTextsInOrder(size_t count, size_t threads, const std::function<MakeText()>& maker,
                      const std::function<void(std::string& text)>& take) {
  const size_t used = std::clamp<size_t>(threads, 1, std::max<size_t>(1, count));
  InOrder order(count, used, take);
  RunAll(std::vector<std::function<void()>>(used, [&] { order.Work(maker()); }));
}

}  // namespace trainprof
