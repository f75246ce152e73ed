#include "analysis/kernel_title.h"

namespace trainprof {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of a name that no demangler takes (cuDNN's own CUTLASS): from its last own identifier on, which stands before the
// template's arguments. "_ZN17cutlass__5x_cudnn6KernelINS_..." -> "KernelINS_...".
std::string_view MangledTitle(std::string_view name) {
  std::string_view title = name;
  for (size_t at = 3; at < name.size() && IsDigit(name[at]);) {
    size_t length = 0;
    for (; at < name.size() && IsDigit(name[at]) && length < name.size(); ++at) {
      length = 10 * length + static_cast<size_t>(name[at] - '0');
    }
    if (length == 0 || length > name.size() - at) break;
    title = name.substr(at);
    at += length;
  }
  return title;
}

}  // namespace

std::string_view KernelTitle(std::string_view name) {
  if (name.starts_with("_ZN")) return MangledTitle(name);
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
