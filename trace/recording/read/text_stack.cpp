#include "trace/recording/read/text_stack.h"

#include <charconv>
#include <optional>
#include <vector>

namespace trainprof::recording {
namespace {

std::optional<FrameText> FrameOf(std::string_view text) {
  FrameText frame;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), frame.line);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const size_t space = text.find(' ', 1);
  if (error != std::errc() || frame.line < 0 || !text.starts_with(' ') ||
      space == std::string_view::npos || space == 1 || space + 1 == text.size()) {
    return std::nullopt;
  }
  frame.function = text.substr(1, space - 1);
  frame.file = text.substr(space + 1);
  return frame;
}

}  // namespace

StackId AddTextStack(TraceBuilder& builder, std::string_view text) {
  std::vector<FrameText> frames;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    if (const auto frame = FrameOf(text.substr(at, end - at))) frames.push_back(*frame);
    at = end + 1;
  }
  StackId stack = kNoStack;
  for (size_t i = frames.size(); i-- > 0;) {
    stack = builder.AddStack(builder.AddFrame(frames[i]), stack);
  }
  return stack;
}

}  // namespace trainprof::recording
