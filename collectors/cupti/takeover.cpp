#include "collectors/cupti/takeover.h"

#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

bool CallsOurClock(Session& session) {
  uint64_t told = 0;
  const int64_t before = MonotonicNs();
  const CUptiResult result =
      Watched(session, "cuptiGetTimestamp", [&] { return session.client.GetTimestamp(&told); });
  const auto now = static_cast<int64_t>(told);
  return result != CUPTI_SUCCESS || (now >= before && now <= MonotonicNs());
}

// As we have set it.
bool ThreadsHaveBuffers(Session& session) {
  uint8_t on = 1;
  size_t bytes = sizeof on;
  Watched(session, "cuptiActivityGetAttribute",
          [&] { return session.client.GetAttribute(kBuffersPerThread, &bytes, &on); });
  return on != 0;
}

// Of kernels and calls.
bool AnyIsOn(Session& session) {
  constexpr uint32_t kMost = 128;
  CUpti_ActivityKind kinds[kMost];
  uint32_t bytes = sizeof kinds;
  uint32_t count = 0;
  const auto ask = session.library.api.get_enabled_kinds;
  const CUptiResult result = Watched(session, "cuptiActivityGetEnabledKinds",
                                     [&] { return ask(nullptr, kinds, &bytes, &count); });
  if (result != CUPTI_SUCCESS) return false;
  for (uint32_t i = 0; i < count && i < kMost; ++i) {
    const auto kind = static_cast<uint32_t>(kinds[i]);
    if (kind == kKernelActivity || kind == kRuntimeActivity || kind == kDriverActivity) return true;
  }
  return false;
}

}  // namespace

void NoteWhatIsOurs(Session& session) {
  const bool can = !session.client.shares;  // who shares keeps its own
  session.has_own_clock = can && session.has_own_clock && CallsOurClock(session);
  session.has_own_buffers = can && session.has_own_buffers &&
                            session.library.api.get_attribute != nullptr &&
                            ThreadsHaveBuffers(session);
}

bool IsOurs(Session& session) {
  if (session.has_own_clock && !CallsOurClock(session)) return false;
  return !session.has_own_buffers || ThreadsHaveBuffers(session);
}

bool OthersAreDone(Session& session) {
  if (!session.has_own_buffers || ThreadsHaveBuffers(session)) return false;
  return session.library.api.get_enabled_kinds == nullptr || !AnyIsOn(session);
}

}  // namespace trainprof::collectors
