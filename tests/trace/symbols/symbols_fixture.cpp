// A user's library with a known line, inside an inlined call. The tests name the line numbers.
#include "tests/trace/symbols/symbols_fixture.h"

namespace user {
namespace {

__attribute__((noinline)) void* ReturnAddress() {
  asm volatile("");
  return __builtin_return_address(0);
}

inline __attribute__((always_inline)) void* ReadLoss() {
  void* address = ReturnAddress();
  asm volatile("");
  return address;
}

}  // namespace

void* TrainStep() {
  void* address = ReadLoss();
  asm volatile("");
  return address;
}

}  // namespace user
