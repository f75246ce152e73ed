// Jobs that show each main state of the viewer, for its pictures.
#pragma once

#include <filesystem>
#include <ostream>
#include <span>

namespace trainprof::testing {

struct Scene {
  const char* name;  // of its pictures
  // Writes the job into an empty folder, or takes one that lies ready; returns what to open.
  std::filesystem::path (*make)(const std::filesystem::path& folder);
  int64_t step;     // that is shown; < 0: what opens by itself
  int64_t finding;  // that is open; 0: none
};

// What GoogleTest prints.
inline void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

std::span<const Scene> Scenes();

// A recording of `threads` threads that run operators, each with the kernel that it launched on
// the thread's own stream, in steps that begin with a wait for data; sealed. About `events` events.
void WriteBigRecording(const std::filesystem::path& run, size_t events, uint32_t threads);

}  // namespace trainprof::testing
