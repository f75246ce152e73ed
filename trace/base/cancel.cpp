#include "trace/base/cancel.h"

#include <utility>

namespace trainprof {
namespace {

thread_local const CancelScope* t_scope = nullptr;

}  // namespace

CancelScope::CancelScope(std::function<bool()> is_cancelled)
    : is_cancelled_(std::move(is_cancelled)), outer_(std::exchange(t_scope, this)) {}

CancelScope::~CancelScope() { t_scope = outer_; }

const CancelScope* CancelScope::Current() { return t_scope; }

bool CancelScope::IsCancelled() const {
  for (const CancelScope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (scope->is_cancelled_()) return true;
  }
  return false;
}

void ThrowIfCancelled() {
  if (t_scope != nullptr && t_scope->IsCancelled()) throw Cancelled();
}

bool RunUnlessCancelled(const std::atomic<bool>* cancel, const std::function<void()>& work) {
  const CancelScope scope([cancel] { return cancel != nullptr && cancel->load(); });
  try {
    work();
  } catch (const Cancelled&) {
    return false;
  }
  return true;
}

}  // namespace trainprof
