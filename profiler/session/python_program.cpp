#include "profiler/session/python_program.h"

#include <string_view>

namespace trainprof {

std::string OptionThatHidesHooks(const std::vector<std::string>& program) {
  if (program.empty()) return "";
  const std::string_view path = program.front();
  if (!path.substr(path.rfind('/') + 1).starts_with("python")) return "";
  for (size_t i = 1; i < program.size(); ++i) {
    const std::string_view word = program[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return "";
    for (const char option : word.substr(1)) {
      if (option == 'E' || option == 'I' || option == 'S') return {'-', option};
      if (option == 'c' || option == 'm') return "";  // the program follows
      if (option == 'W' || option == 'X') {           // a value follows, in this word or the next
        i += word.back() == option ? 1 : 0;
        break;
      }
    }
  }
  return "";
}

}  // namespace trainprof
