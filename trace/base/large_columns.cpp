#include "trace/base/large_columns.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace trainprof {
namespace {

constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which older headers lack

// The whole pages in a room.
struct Pages {
  Pages(const void* room, size_t bytes, uintptr_t page) {
    const auto address = reinterpret_cast<uintptr_t>(room);
    begin = (address + page - 1) & ~(page - 1);
    end = std::max(begin, (address + bytes) & ~(page - 1));
  }
  uintptr_t begin;
  uintptr_t end;
};

// False: the kernel cannot, or will not.
bool Advise(uintptr_t begin, uintptr_t end, int advice) {
  return madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
}

}  // namespace

void PreferLargePages(void* room, size_t bytes) {
  const Pages pages(room, bytes, kLargePage);
  if (pages.begin < pages.end) Advise(pages.begin, pages.end, MADV_HUGEPAGE);
}

void ReturnPages(void* room, size_t bytes) {
  constexpr size_t kWorthACall = size_t{256} << 10;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (bytes < kWorthACall) return;
  const Pages pages(room, bytes, page);
  Advise(pages.begin, pages.end, MADV_DONTNEED);
}

void RoomAhead::Start() {
  constexpr size_t kWorthAThread = size_t{32} << 20;
  size_t bytes = 0;
  for (const Room& room : rooms_) bytes += room.bytes;
  if (bytes < kWorthAThread || UsableCores() < 2) return;
  // Without it each page is cleared when it is written to.
  helper_.Start(1, [this] { Work(); });
}

// A page of each room in turn, as rows fill all columns alike.
void RoomAhead::Work() const {
  // What an estimate that is far too high may cost.
  constexpr size_t kMostBytes = size_t{512} << 20;
  size_t taken = 0;
  for (size_t offset = 0;; offset += kLargePage) {
    bool any = false;
    for (const Room& room : rooms_) {
      const Pages pages(room.begin, room.bytes, kLargePage);
      if (offset >= pages.end - pages.begin) continue;
      const uintptr_t page = pages.begin + offset;
      if (stop_ || taken >= kMostBytes) return;
      if (!Advise(page, page + kLargePage, kPopulateWrite)) return;
      taken += kLargePage;
      any = true;
    }
    if (!any) return;
  }
}

}  // namespace trainprof
