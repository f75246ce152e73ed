#include "tests/virtual_gpu/model/tool.h"

#include <signal.h>
#include <unistd.h>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/settings.h"

namespace vgpu {
namespace {

std::atomic<uint32_t> last_correlation = 0;
std::atomic<uint64_t> calls = 0;
thread_local uint32_t current_correlation = 0;
thread_local int depth = 0;

void CountCall() {
  const uint64_t count = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t fatal = FaultNumber(Fault::crash_at, 0);
  if (fatal > 0 && count >= static_cast<uint64_t>(fatal)) kill(getpid(), SIGKILL);
}

// Code without unwind information: calls function(argument) from a frame of 264 bytes.
#if defined(__x86_64__)
extern "C" void VgpuCallWithoutUnwindInfo(void (*function)(void*), void* argument);
asm(".text\n"
    ".type VgpuCallWithoutUnwindInfo, @function\n"
    "VgpuCallWithoutUnwindInfo:\n"
    "  sub $264, %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  add $264, %rsp\n"
    "  ret\n"
    ".size VgpuCallWithoutUnwindInfo, . - VgpuCallWithoutUnwindInfo\n");
#else
void VgpuCallWithoutUnwindInfo(void (*function)(void*), void* argument) { function(argument); }
#endif

struct ExitCall {
  Tool* tool;
  ApiCall* call;
};

void TellExit(Tool* tool, ApiCall& call) {
  if (!Has(Fault::no_unwind_info)) return tool->Exit(call);
  ExitCall exit = {tool, &call};
  VgpuCallWithoutUnwindInfo(
      [](void* argument) {
        const auto& exit = *static_cast<ExitCall*>(argument);
        exit.tool->Exit(*exit.call);
      },
      &exit);
}

}  // namespace

std::atomic<Tool*> attached_tool = nullptr;

uint32_t CurrentCorrelation() { return current_correlation; }
bool NestedInApiCall() { return depth > 1; }
uint64_t ApiCallCount() { return calls; }

ApiScope::ApiScope(ApiDomain domain, uint32_t cbid, const void* params)
    : call_{domain, cbid, params, nullptr, 0, 0, {}, {}},
      tool_(AttachedTool()),
      outer_correlation_(current_correlation) {
  ++depth;
  CountCall();
  if (Least(Setting::scale) > 0) start_ns_ = NowNs();
  if (tool_ == nullptr) return;
  call_.correlation = outer_correlation_ != 0 ? outer_correlation_ : ++last_correlation;
  current_correlation = call_.correlation;
  tool_->Enter(call_);
}

ApiScope::~ApiScope() {
  --depth;
  if (duration_ns_ > 0 && start_ns_ > 0) UseProcessor(start_ns_ + duration_ns_ - NowNs());
  if (tool_ == nullptr) return;
  TellExit(tool_, call_);
  current_correlation = outer_correlation_;
}

}  // namespace vgpu
