// What the way in which a Python program was started says about how it can be recorded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trainprof {

// "-I" where the program is a Python interpreter whose options keep it from reading PYTHONPATH or
// from importing sitecustomize (-E, -I, -S), and so from our hooks; "" elsewhere, and for -E and -I
// where trainprof is installed with that interpreter, which then needs no PYTHONPATH.
std::string OptionThatHidesHooks(const std::vector<std::string>& program);

// Why a process that runs Python lacks our hooks, and what to do, in a sentence or two: an option,
// an environment that was emptied or changed, or an interpreter that imports no sitecustomize.
// nullopt: nothing keeps them out, or they are there. `proc_folder`: /proc/PID; `may_be_loaded`: torch was imported so
// long ago that hooks would have loaded our library.
std::optional<std::string> WhyNoHooks(const std::filesystem::path& proc_folder, bool may_be_loaded);

// Whether our library is there, which the hooks load, or which loads them (python/late_start.h).
bool HasCollector(const std::filesystem::path& proc_folder);

}  // namespace trainprof
