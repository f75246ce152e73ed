// Long work that may be cancelled. Who starts it says once how to know; loops over many rows ask on
// their way. The answer travels as an exception: nothing half done is ever returned, and the
// functions in between, mostly pure ones of a trace, need not hand it on.
//
//   const bool whole = RunUnlessCancelled(&cancel, [&] { analysis = Analyze(trace); });
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "trace/base/result.h"

namespace trainprof {

// While one of these lives, CancelPoint() on this thread ends the work that stands below it.
class CancelScope {
 public:
  // Asked from any thread of the work, a few thousand times a second; once true, always true.
  explicit CancelScope(std::function<bool()> is_cancelled);
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  ~CancelScope();

  // The innermost one of the calling thread; nullptr where there is none. A thread that does a part
  // of another's work opens a scope that asks the other's.
  static const CancelScope* Current();
  // By itself, or by what is around it.
  bool IsCancelled() const;

 private:
  const std::function<bool()> is_cancelled_;
  const CancelScope* const outer_;
};

// What CancelPoint() throws. No std::exception, so that nobody takes it for a failure; only
// RunUnlessCancelled catches it.
struct Cancelled {};

void ThrowIfCancelled();

// In loops over many rows, with the number of the row, so that it costs nothing; without one
// between stages. Rows in between take a few milliseconds at most.
inline void CancelPoint(size_t row = 0) {
  constexpr size_t kRowsBetween = 1 << 15;
  if (row % kRowsBetween == 0) ThrowIfCancelled();
}

// Runs `work` until `cancel` turns true (nullptr: to its end); may be set by a signal handler.
// False: it was cancelled, here or by a scope around it, and what it was to make is not there.
bool RunUnlessCancelled(const std::atomic<bool>* cancel, const std::function<void()>& work);

// The same for work that gives a Result: when cancelled, the error "<what>: cancelled".
template <class Work>
auto ResultUnlessCancelled(const std::string& what, const std::atomic<bool>* cancel, Work work)
    -> decltype(work()) {
  std::optional<decltype(work())> result;
  if (RunUnlessCancelled(cancel, [&] { result = work(); })) return *std::move(result);
  return Error{what + ": cancelled"};
}

}  // namespace trainprof
