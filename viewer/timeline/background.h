// Values that are made on a thread of their own where that would hold up a frame.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "trace/base/cancel.h"

namespace trainprof {

// One value that is being made. All but what makes it is for one thread.
template <class Value>
class BackgroundJob {
 public:
  bool busy() const { return work_ != nullptr; }

  // Only when not busy. `make()` has to own what it refers to, and can be cancelled (cancel.h):
  // whoever drops the job waits for it.
  template <class Make>
  void Start(Make make) {
    work_ = std::make_unique<Work>();
    work_->result =
        std::async(std::launch::async, [make = std::move(make), cancel = &work_->cancel]() mutable {
          std::optional<Value> value;
          RunUnlessCancelled(cancel, [&] { value = make(); });
          return value;
        });
  }
  // Nobody wants the value any more.
  void Cancel() {
    if (work_) work_->cancel = true;
  }
  // Once it is there: the value, or nothing where it was cancelled; then it is not busy any more.
  std::optional<Value> Take() {
    if (!work_ || work_->result.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return std::nullopt;
    const std::unique_ptr<Work> work = std::move(work_);
    std::optional<Value> value = work->result.get();
    if (work->cancel) return std::nullopt;
    return value;
  }

 private:
  struct Work {
    std::atomic<bool> cancel = false;
    std::future<std::optional<Value>> result;  // nothing where it was cancelled
    // The future waits for its thread, which looks at `cancel` every few milliseconds.
    ~Work() { cancel = true; }
  };
  std::unique_ptr<Work> work_;
};

// The value of a key, made when it is first asked for.
template <class Key, class Value>
class Background {
 public:
  // The value of `key`; null while it is being made. `make` as for BackgroundJob, unless at_once.
  // Drops the value of another key.
  template <class Make>
  const Value* Get(const Key& key, bool at_once, Make make) {
    Take();
    if (key_ == key) return value_ ? &*value_ : nullptr;
    if (job_.busy()) {  // of a key that nobody wants any more: its thread ends soon
      job_.Cancel();
      return nullptr;
    }
    key_ = key;
    value_.reset();
    ++generation_;
    if (at_once) {
      value_ = make();
      return &*value_;
    }
    job_.Start(std::move(make));
    return nullptr;
  }

  // A later frame will show more.
  bool busy() const { return job_.busy(); }
  // Another one for each value that Get returned.
  uint64_t generation() const { return generation_; }

 private:
  void Take() {
    if (!job_.busy()) return;
    std::optional<Value> value = job_.Take();
    if (job_.busy()) return;
    value_ = std::move(value);
    if (!value_) key_.reset();
  }

  std::optional<Key> key_;
  std::optional<Value> value_;
  BackgroundJob<Value> job_;
  uint64_t generation_ = 0;
};

}  // namespace trainprof
