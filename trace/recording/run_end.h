// How a recorded run ended, as far as its manifest knows.
#pragma once

#include <filesystem>
#include <string>

namespace trainprof::recording {

// A sentence without its full stop, for a run that did not end by itself: "the program was ended by
// signal 9 (Killed)". Empty for any other, and for what is no recording. `path` may be the run, a
// folder in it or a segment.
std::string HowItWasKilled(const std::filesystem::path& path);

}  // namespace trainprof::recording
