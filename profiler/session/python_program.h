// What the command line of a Python program says about how it can be recorded.
#pragma once

#include <string>
#include <vector>

namespace trainprof {

// "-I" where the program is a Python interpreter whose options keep it from reading PYTHONPATH or
// from importing sitecustomize (-E, -I, -S), and so from our hooks; "" elsewhere, and for -E and -I
// where trainprof is installed with that interpreter, which then needs no PYTHONPATH.
std::string OptionThatHidesHooks(const std::vector<std::string>& program);

}  // namespace trainprof
