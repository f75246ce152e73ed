#include "trace/formats/chrome/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace trainprof {
namespace {

constexpr StackId kNotParsed{UINT32_MAX - 1};

// "train.py(88): step".
bool ParseLine(std::string_view text, FrameText& frame) {
  const size_t close = text.find("): ");
  if (close == std::string_view::npos) return false;
  const size_t open = text.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return false;
  const char* const number_end = text.data() + close;
  const auto [end, error] = std::from_chars(text.data() + open + 1, number_end, frame.line);
  if (error != std::errc{} || end != number_end) return false;
  frame.file = text.substr(0, open);
  frame.function = text.substr(close + 3);
  return true;
}

// "/home/me/train(+0x1a2b): step", "/home/me/train(+0x1a2b)".
bool ParseModule(std::string_view text, FrameText& frame) {
  constexpr std::string_view kOffset = "(+0x";
  const size_t open = text.find(kOffset);
  if (open == std::string_view::npos || open == 0) return false;
  const size_t close = text.find(')', open);
  if (close == std::string_view::npos) return false;
  const char* const number_end = text.data() + close;
  const auto [end, error] =
      std::from_chars(text.data() + open + kOffset.size(), number_end, frame.offset, 16);
  const std::string_view rest = text.substr(close + 1);
  if (error != std::errc{} || end != number_end) return false;
  if (!rest.empty() && !rest.starts_with(": ")) return false;
  frame.module = text.substr(0, open);
  frame.function = rest.substr(std::min<size_t>(2, rest.size()));
  return true;
}

}  // namespace

FrameText ParseFrame(std::string_view text) {
  FrameText frame;
  if (ParseLine(text, frame)) return frame;
  frame = {};
  if (ParseModule(text, frame)) return frame;
  return {.function = text, .file = {}, .module = {}};
}

std::string FrameSpelled(const Trace& trace, const CallFrame& frame) {
  const std::string_view function = trace.Text(frame.function);
  if (!frame.HasPlace()) {
    return function.empty() ? fmt::format("{:#x}", frame.offset) : std::string(function);
  }
  const std::string place = frame.HasLine()
                                ? fmt::format("{}({})", trace.Text(frame.file), frame.line)
                                : fmt::format("{}(+{:#x})", trace.Text(frame.module), frame.offset);
  return function.empty() ? place : fmt::format("{}: {}", place, function);
}

std::string StackSpelled(const Trace& trace, StackId stack) {
  std::string text;
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    if (!text.empty()) text += ';';
    const size_t first = text.size();
    text += FrameSpelled(trace, frame);
    std::replace(text.begin() + static_cast<ptrdiff_t>(first), text.end(), ';', ',');
    return true;
  });
  return text;
}

StackId& StackTexts::Known(std::vector<StackId>& known, StringId text) {
  if (Index(text) >= known.size()) known.resize(builder_.trace().strings.size(), kNotParsed);
  return known[Index(text)];
}

StackId StackTexts::OfText(StringId id) {
  if (const StackId known = Known(stack_of_text_, id); known != kNotParsed) return known;
  const std::string text(builder_.trace().Text(id));  // interning moves the table's texts
  StackId stack = kNoStack;
  for (size_t end = text.size(), begin = 0; end > 0; end = begin - 1) {
    const size_t separator = text.rfind(';', end - 1);
    begin = separator == std::string::npos ? 0 : separator + 1;
    const std::string_view frame(text.data() + begin, end - begin);
    if (!frame.empty()) stack = builder_.AddStack(builder_.AddFrame(ParseFrame(frame)), stack);
    if (begin == 0) break;
  }
  return stack_of_text_[Index(id)] = stack;
}

StackId StackTexts::OfFrame(StringId name) {
  if (const StackId known = Known(stack_of_name_, name); known != kNotParsed) return known;
  const std::string text(builder_.trace().Text(name));
  const StackId stack = builder_.AddStack(builder_.AddFrame(ParseFrame(text)), kNoStack);
  return stack_of_name_[Index(name)] = stack;
}

}  // namespace trainprof
