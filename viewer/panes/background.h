// A value that is made when it is first asked for: on a thread of its own where that would hold up
// a frame.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace trainprof {

template <class Key, class Value>
class Background {
 public:
  // The value of `key`; null while it is being made. `make(const std::atomic<bool>* cancel)` ends
  // early with anything when *cancel turns true. Made on another thread, it has to own what it
  // refers to. Drops the value of another key.
  template <class Make>
  const Value* Get(const Key& key, bool at_once, Make make) {
    Take();
    if (key_ == key) return value_ ? &*value_ : nullptr;
    if (job_) {  // of a key that nobody wants any more: its thread ends soon
      job_->cancel = true;
      return nullptr;
    }
    key_ = key;
    value_.reset();
    ++generation_;
    if (at_once) {
      const std::atomic<bool> never = false;
      value_ = make(&never);
      return &*value_;
    }
    job_ = std::make_unique<Job>();
    job_->result = std::async(std::launch::async, [make = std::move(make), cancel = &job_->cancel] {
      return make(cancel);
    });
    return nullptr;
  }

  // A later frame will show more.
  bool busy() const { return job_ != nullptr; }
  // Another one for each value that Get returned.
  uint64_t generation() const { return generation_; }

 private:
  struct Job {
    std::atomic<bool> cancel = false;
    std::future<Value> result;
    // The future waits for its thread, which looks at `cancel` every few milliseconds.
    ~Job() { cancel = true; }
  };

  void Take() {
    if (!job_ || job_->result.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return;
    const bool wanted = !job_->cancel;
    Value value = job_->result.get();
    job_.reset();
    if (wanted) {
      value_ = std::move(value);
    } else {
      key_.reset();
    }
  }

  std::optional<Key> key_;
  std::optional<Value> value_;
  std::unique_ptr<Job> job_;
  uint64_t generation_ = 0;
};

}  // namespace trainprof
