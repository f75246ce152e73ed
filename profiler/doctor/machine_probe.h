// Small readers that the machine's checks share.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace trainprof {

// For one foreign library or program that is asked something; a driver may take seconds to wake.
inline constexpr std::chrono::milliseconds kProbeLimit{5000};

// A file's text or first line; empty when it cannot be read.
std::string ReadWhole(const std::filesystem::path& path);
std::string ReadLine(const std::filesystem::path& path);

// Whether we have the capability of that number: its bit in CapEff of root/proc/self/status.
bool HaveCapability(const std::filesystem::path& root, int number);

}  // namespace trainprof
