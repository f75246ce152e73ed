#include "trace/large_columns.h"

#include <sys/mman.h>

#include <cstdint>

namespace trainprof {

void PreferLargePages(void* room, size_t bytes) {
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(room);
  const uintptr_t begin = (address + kLargePage - 1) & ~(kLargePage - 1);
  const uintptr_t end = (address + bytes) & ~(kLargePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace trainprof
