// Names of kernels as people tell them apart.
#pragma once

#include <string_view>

namespace trainprof {

// A kernel's name from its own word on, without what it returns and its namespaces: what tells
// kernels apart where there is little room. Other names are whole.
std::string_view KernelTitle(std::string_view name);

}  // namespace trainprof
