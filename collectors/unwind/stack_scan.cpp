#include "collectors/unwind/stack_scan.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectors/unwind/modules.h"
#include "collectors/unwind/unwind.h"

// libgcc's, behind its unwinder: where the function begins that holds an address.
extern "C" {
struct dwarf_eh_bases {
  void* text;
  void* data;
  void* function;
};
const void* _Unwind_Find_FDE(void* address, dwarf_eh_bases* bases);
}

namespace trainprof::collectors {
namespace {

// From one frame to the next at most. The driver's frames take a few KiB.
constexpr uint64_t kReachBytes = 32 * 1024;
constexpr uint64_t kWord = sizeof(uint64_t);

// Without a fault where nothing is.
bool Read(uint64_t address, void* out, size_t bytes) {
  iovec here = {out, bytes};
  iovec there = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// The stack, read in pieces that lie within one page each.
class StackWords {
 public:
  bool Word(uint64_t address, uint64_t* word) {
    const uint64_t begin = address & ~(sizeof piece_ - 1);
    if (begin != begin_ && !Read(begin_ = begin, piece_, sizeof piece_)) return false;
    *word = piece_[(address - begin) / kWord];
    return true;
  }

 private:
  uint64_t begin_ = 1;  // none
  uint64_t piece_[128];
};

class Code {
 public:
  // Whether so many bytes before `address`, and the one at it, are code of a loaded object.
  bool Holds(uint64_t address, uint64_t before) {
    if (address >= facts_.begin + before && address < facts_.end) return true;
    LoadedObject object;
    recording::ModuleFacts facts{};
    if (!FindObject(address, &object) || !DescribeModule(object, address, &facts)) return false;
    facts_ = facts;
    return address >= facts_.begin + before && address < facts_.end;
  }

 private:
  recording::ModuleFacts facts_{};
};

template <class Value>
Value At(uint64_t address) {
  Value value;
  memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

#if defined(__x86_64__)

// The address in a table of linkage; 0 where there is none.
uint64_t Linked(uint64_t slot) {
  uint64_t address = 0;
  return slot % kWord == 0 && Read(slot, &address, sizeof address) ? address : 0;
}

// The end of a linkage stub's jump is its slot's: endbr64; bnd jmp *slot(%rip).
uint64_t BehindStub(Code& code, uint64_t target) {
  constexpr uint64_t kStubBytes = 11;
  if (!code.Holds(target, 0) || !code.Holds(target + kStubBytes, kStubBytes)) return 0;
  uint64_t at = target;
  if (At<uint32_t>(at) == 0xFA1E0FF3) at += 4;
  if (At<uint8_t>(at) == 0xF2) at += 1;
  if (At<uint16_t>(at) != 0x25FF) return target;
  const uint64_t slot = at + 6 + static_cast<uint64_t>(int64_t{At<int32_t>(at + 2)});
  return Linked(slot);
}

// The bytes of an indirect call, 0xFF /2, by its second byte and third.
uint64_t IndirectBytes(uint8_t mode, uint8_t scale) {
  if ((mode >> 3 & 7) != 2) return 0;
  const int kind = mode >> 6;
  const int base = mode & 7;
  if (kind == 3) return 2;
  uint64_t bytes = 2 + (base == 4 ? 1 : 0) + (kind == 1 ? 1 : kind == 2 ? 4 : 0);
  if (kind == 0 && (base == 5 || (base == 4 && (scale & 7) == 5))) bytes += 4;
  return bytes;
}

// `target`: what is called; 0 where that does not stand in the code.
bool FollowsCall(Code& code, uint64_t address, uint64_t* target) {
  constexpr uint64_t kLongest = 7;
  *target = 0;
  if (!code.Holds(address, kLongest)) return false;
  if (At<uint8_t>(address - 5) == 0xE8) {
    *target = BehindStub(code, address + static_cast<uint64_t>(int64_t{At<int32_t>(address - 4)}));
    if (*target != 0) return true;
  }
  for (uint64_t bytes = 2; bytes <= kLongest; ++bytes) {
    const uint64_t at = address - bytes;
    if (At<uint8_t>(at) != 0xFF ||
        IndirectBytes(At<uint8_t>(at + 1), At<uint8_t>(at + 2)) != bytes) {
      continue;
    }
    if (At<uint8_t>(at + 1) == 0x15) {
      *target = Linked(address + static_cast<uint64_t>(int64_t{At<int32_t>(at + 2)}));
    }
    return true;
  }
  return false;
}

#elif defined(__aarch64__)

bool FollowsCall(Code& code, uint64_t address, uint64_t* target) {
  *target = 0;
  if (address % 4 != 0 || !code.Holds(address, 4)) return false;
  const auto instruction = At<uint32_t>(address - 4);
  return (instruction & 0xFC000000) == 0x94000000 || (instruction & 0xFFFFFC1F) == 0xD63F0000;
}

#endif

uint64_t FunctionAround(uint64_t address) {
  dwarf_eh_bases bases{};
  const void* found = _Unwind_Find_FDE(reinterpret_cast<void*>(address - 1), &bases);
  return found == nullptr ? 0 : reinterpret_cast<uint64_t>(bases.function);
}

}  // namespace

uint32_t ScanStack(uint64_t stack, uint64_t* frames, uint32_t room) {
  StackWords words;
  Code code;
  uint32_t count = 0;
  uint64_t callee = 0;
  uint64_t end = stack + kReachBytes;
  for (uint64_t at = (stack + kWord - 1) & ~(kWord - 1); at < end && count < room; at += kWord) {
    uint64_t address = 0;
    uint64_t target = 0;
    if (!words.Word(at, &address)) break;
    if (!FollowsCall(code, address, &target)) continue;
    const bool fits =
        count > 0 ? target == callee : !IsCuda(address) && (target == 0 || IsCuda(target));
    if (!fits) continue;
    frames[count++] = address;
    callee = FunctionAround(address);
    if (callee == 0) break;
    end = at + kReachBytes;
  }
  return count;
}

}  // namespace trainprof::collectors
