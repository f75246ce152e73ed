// Preloaded: the first text that libfmt formats is an exception that nobody expects.
#include <fmt/format.h>

#include <iterator>
#include <stdexcept>

FMT_BEGIN_NAMESPACE
std::string vformat(string_view format, format_args arguments) {
  static bool has_thrown = false;
  if (!has_thrown) {
    has_thrown = true;
    throw std::logic_error("made by a test");
  }
  std::string text;
  vformat_to(std::back_inserter(text), format, arguments);
  return text;
}
FMT_END_NAMESPACE
