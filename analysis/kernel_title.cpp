#include "analysis/kernel_title.h"

namespace trainprof {

std::string_view KernelTitle(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  // Template arguments and parameters, which begin here, have namespaces of their own.
  size_t end = name.find_first_of("<(");
  while (end != name.npos && name.substr(end).starts_with(kAnonymous)) {
    end = name.find_first_of("<(", end + kAnonymous.size());
  }
  if (end == name.npos) return name;
  const std::string_view head = name.substr(0, end);
  const size_t last = head.find_last_of(": ");
  const std::string_view title = name.substr(last == head.npos ? 0 : last + 1);
  // "Memcpy HtoD (Pinned -> Device)" is no function; an operator's class says more than its name.
  const bool is_function = title.size() > name.size() - end;
  return is_function && !title.starts_with("operator") ? title : name;
}

}  // namespace trainprof
