// Where a process id means one process: a pid namespace, until the machine's next boot. Containers
// on one host, and hosts, have the same ids at the same time; names of files and folders that hold
// an id also hold this. Free of the C++ runtime: the in-process library includes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainprof::recording {

inline constexpr char kBootIdFile[] = "/proc/sys/kernel/random/boot_id";
inline constexpr char kPidNamespaceLink[] = "/proc/self/ns/pid";  // -> pid:[4026531836]
inline constexpr size_t kBootIdBytes = 36;  // the UUID, without its line's end

// Of the two texts, as the kernel gives them. 0: one is not known.
constexpr uint32_t PlaceOf(const char* boot_id, size_t boot_bytes, const char* pid_namespace,
                           size_t namespace_bytes) {
  if (boot_bytes < kBootIdBytes || namespace_bytes == 0) return 0;
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](const char* text, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001B3;
    }
  };
  add(boot_id, kBootIdBytes);
  add(pid_namespace, namespace_bytes);
  const auto place = static_cast<uint32_t>(hash ^ hash >> 32);
  return place == 0 ? 1 : place;
}

}  // namespace trainprof::recording
