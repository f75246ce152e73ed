#include "analysis/job/files_ahead.h"

#include <algorithm>
#include <new>
#include <utility>

#include "trace/formats/io/memory_limit.h"

namespace trainprof {

FilesAhead::FilesAhead(std::vector<uint64_t> needs, Load load)
    : needs_(std::move(needs)),
      load_(std::move(load)),
      outer_(CancelScope::Current()),
      slots_(needs_.size()) {
  helpers_.Start(std::min<size_t>(UsableCores(), std::max<size_t>(needs_.size(), 1)) - 1,
                 [this] { Work(); });
}

FilesAhead::~FilesAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  helpers_.Join();
}

void FilesAhead::Work() {
  const CancelScope scope([this] {
    if (outer_ != nullptr && outer_->IsCancelled()) return true;
    const std::lock_guard lock(mutex_);
    return stop_;
  });
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || claimed_ == needs_.size() || MayReadAhead(); });
    if (stop_ || claimed_ == needs_.size()) return;
    LoadClaimed(lock);
  }
}

bool FilesAhead::MayReadAhead() const {
  if (is_alone_ || claimed_ == needs_.size() || claimed_ - given_ > UsableCores()) return false;
  uint64_t needed = 0;
  for (size_t file = given_; file <= claimed_; ++file) needed += needs_[file];
  const uint64_t most = ReadableMemoryBytes();
  return needed <= most - std::min(most, ResidentMemoryBytes());
}

void FilesAhead::LoadClaimed(std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[claimed_];
  const size_t file = claimed_++;
  ++reading_;
  lock.unlock();
  try {
    slot.loaded = load_(file);
  } catch (const std::bad_alloc&) {
    slot.lacks_memory = true;
  } catch (...) {
    slot.failure = std::current_exception();
  }
  lock.lock();
  slot.is_done = true;
  --reading_;
  changed_.notify_all();
}

Result<Trace> FilesAhead::Next() {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[given_];
  while (!slot.is_done) {
    if (claimed_ == given_ || MayReadAhead()) {
      LoadClaimed(lock);
      continue;
    }
    changed_.wait(lock);
  }
  if (slot.lacks_memory) return LoadAlone(lock);
  ++given_;
  changed_.notify_all();
  if (slot.failure) std::rethrow_exception(slot.failure);
  return *std::exchange(slot.loaded, std::nullopt);
}

// What was read ahead is given up: it has the memory.
Result<Trace> FilesAhead::LoadAlone(std::unique_lock<std::mutex>& lock) {
  is_alone_ = true;
  changed_.wait(lock, [&] { return reading_ == 0; });
  const size_t file = given_++;
  for (size_t other = file; other < claimed_; ++other) slots_[other] = {};
  claimed_ = given_;
  lock.unlock();
  return load_(file);
}

}  // namespace trainprof
