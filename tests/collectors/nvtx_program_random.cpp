// Calls in random order, with all that tells one range from another: how deep it lies, where its name is, how long that is
// and whether the same memory has held another name before.
#include <nvtx3/nvToolsExt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/collectors/nvtx_program.h"

namespace nvtx_program {
namespace {

// Texts of 0 to 40 bytes, some of which end with their page, behind which there is nothing.
class DrawnNames {
 public:
  DrawnNames() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto* pages = static_cast<char*>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages == MAP_FAILED || munmap(pages + page, page) != 0) std::exit(2);
    for (size_t i = 0; i < std::size(places_); ++i) places_[i] = memory_[i];
    for (size_t i = 1; i <= 8; ++i) places_[i] = pages + page - i * (kMost + 1);
  }
  // One of them, changed first at times.
  const char* Draw(std::mt19937& random) {
    char* place = places_[random() % std::size(places_)];
    if (*place != 0 && random() % 8 != 0) return place;
    const size_t length = random() % (kMost + 1);
    for (size_t i = 0; i < length; ++i) place[i] = static_cast<char>('a' + random() % 2);
    place[length] = 0;
    return place;
  }

 private:
  static constexpr size_t kMost = 40;
  char memory_[24][kMost + 1] = {};
  char* places_[24];
};

bool Fails(const char* what, int is, size_t should) {
  if (is == static_cast<int>(should)) return false;
  std::fprintf(stderr, "%s: level %d, not %zu\n", what, is, should);
  return true;
}

}  // namespace

int Random(const Arguments& arguments) {
  std::mt19937 random(static_cast<unsigned>(std::atol(arguments.at(0).c_str())));
  const long calls = std::atol(arguments.at(1).c_str());
  DrawnNames names;
  size_t depth = 0;
  // Deep and flat by turns: more than is kept for plain ranges, and none.
  unsigned deepen = 50;
  for (long call = 0; call < calls; ++call) {
    if (random() % 64 == 0) deepen = 30 + random() % 40;
    if (random() % 16 == 0) {
      nvtxMarkA(names.Draw(random));
    } else if (depth > 0 && random() % 100 >= deepen) {
      --depth;
      if (Fails("pop", nvtxRangePop(), depth)) return 1;
    } else {
      const char* name = random() % 16 == 0 ? nullptr : names.Draw(random);
      std::printf("%s\n", name == nullptr ? "" : name);
      if (random() % 8 == 0) {
        nvtxEventAttributes_t event{};
        event.version = NVTX_VERSION;
        event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        event.messageType = NVTX_MESSAGE_TYPE_ASCII;
        event.message.ascii = name;
        event.category = 7;
        if (Fails("push with attributes", nvtxRangePushEx(&event), depth)) return 1;
      } else if (Fails("push", nvtxRangePushA(name), depth)) {
        return 1;
      }
      ++depth;
    }
  }
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {  // the parent's ranges are open here, and not recorded
    if (Fails("push in the child", nvtxRangePushA("in the child"), depth)) _exit(1);
    if (Fails("pop in the child", nvtxRangePop(), depth)) _exit(1);
    while (depth > 0) {
      --depth;
      if (Fails("pop of the parent's in the child", nvtxRangePop(), depth)) _exit(1);
    }
    if (nvtxRangePop() != -1) _exit(1);
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  while (depth > 0) {
    --depth;
    if (Fails("last pop", nvtxRangePop(), depth)) return 1;
  }
  return nvtxRangePop() == -1 ? 0 : 1;
}

}  // namespace nvtx_program
