#include "collectors/stacks/call_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace trainprof {
namespace {

constexpr off_t kMostSourceBytes = 2 << 20;
constexpr size_t kMostSources = 2;    // held at a time: each process has its own
constexpr int64_t kMostLines = 100;   // of one call
constexpr size_t kLongestName = 128;  // bytes

bool IsNameByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

// Passes one primary expression: an atom, then any of .name, (...) and [...].
class Primary {
 public:
  explicit Primary(std::string_view text) : text_(text) {}

  // The callee, if the text is a primary that ends with a call.
  std::string_view Callee() {
    SkipBlanks();
    size_t name = at_;  // where the last chain of names begins
    if (!SkipAtom()) return {};
    std::string_view callee;
    while (SkipBlanks(), at_ < text_.size()) {
      const size_t end = at_;
      const char c = text_[at_];
      callee = {};
      if (c == '.') {
        if (closed_) name = at_;
        closed_ = false;
        ++at_;
        SkipBlanks();
        if (!SkipName()) return {};
      } else if (c == '(') {
        if (!SkipBrackets()) return {};
        // What is called is a name, or what a call gave.
        if (!closed_) callee = text_.substr(name, end - name);
        closed_ = true;
      } else if (c == '[') {
        if (!SkipBrackets()) return {};
        closed_ = true;
      } else {
        return {};
      }
    }
    while (!callee.empty() && IsBlank(callee.back())) callee.remove_suffix(1);
    const bool plain =
        std::all_of(callee.begin(), callee.end(), [](char c) { return IsNameByte(c) || c == '.'; });
    return plain && callee.size() <= kLongestName ? callee : std::string_view();
  }

 private:
  static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (IsBlank(text_[at_]) || text_[at_] == '\\') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool SkipName() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    return at_ > begin;
  }
  bool SkipAtom() {
    if (at_ >= text_.size()) return false;
    if (SkipTexts()) return true;
    closed_ = IsOpening(text_[at_]);
    if (closed_) return SkipBrackets();
    const size_t begin = at_;
    return SkipName() && !IsKeyword(text_.substr(begin, at_ - begin));
  }
  // One text or more, with their prefixes, that stand one behind the other.
  bool SkipTexts() {
    for (size_t end = at_;; closed_ = true) {
      SkipBlanks();
      SkipName();
      const bool is_text = at_ < text_.size() && IsQuote(text_[at_]) && SkipText();
      if (!is_text) {
        at_ = end;
        return closed_;
      }
      end = at_;
    }
  }
  // Words that a bracket may follow and that call nothing.
  static bool IsKeyword(std::string_view word) {
    constexpr std::string_view kWords[] = {"and",    "assert", "await", "del",   "elif",   "else",
                                           "except", "for",    "from",  "if",    "in",     "is",
                                           "lambda", "not",    "or",    "raise", "return", "while",
                                           "with",   "yield",  "import"};
    return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
  }
  static bool IsQuote(char c) { return c == '"' || c == '\''; }
  static bool IsOpening(char c) { return c == '(' || c == '[' || c == '{'; }
  static bool IsClosing(char c) { return c == ')' || c == ']' || c == '}'; }

  bool SkipText() {
    const char quote = text_[at_];
    const bool is_long = text_.substr(at_, 3) == std::string(3, quote);
    const std::string end(is_long ? 3 : 1, quote);
    for (at_ += end.size(); at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_.substr(at_, end.size()) == end) {
        at_ += end.size();
        return true;
      }
    }
    return false;
  }
  bool SkipBrackets() {
    size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (IsQuote(c)) {
        if (!SkipText()) return false;
        continue;
      }
      if (c == '#') {
        SkipBlanks();
        continue;
      }
      ++at_;
      if (IsOpening(c)) ++depth;
      if (IsClosing(c) && --depth == 0) return true;
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool closed_ = false;  // the last chain of names has ended, with a bracket or a text
};

// Empty for what is no file of a usual size: a pipe would make the reader wait.
std::string ReadSource(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return {};
  std::string text;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kMostSourceBytes) {
    text.resize(static_cast<size_t>(info.st_size));
    const ssize_t got = read(fd, text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  close(fd);
  return text;
}

}  // namespace

std::string_view CalleeOf(std::string_view expression) { return Primary(expression).Callee(); }

const CallNames::Source& CallNames::SourceOf(std::string_view file) {
  const auto known = sources_.find(file);
  if (known != sources_.end()) return known->second;
  if (sources_.size() >= kMostSources) sources_.clear();
  Source& source = sources_[std::string(file)];
  const std::filesystem::path path(file);
  source.text =
      ReadSource(path.is_absolute() ? proc_ / "root" / path.relative_path() : proc_ / "cwd" / path);
  for (size_t at = 0; at < source.text.size();) {
    source.lines.push_back(at);
    at = std::min(source.text.find('\n', at), source.text.size()) + 1;
  }
  return source;
}

std::string CallNames::At(std::string_view file, const SourceSpan& span) {
  if (span.column < 0 || span.end_column < 0 || span.line <= 0 || span.end_line < span.line ||
      span.end_line - span.line > kMostLines) {
    return {};
  }
  const Source& source = SourceOf(file);
  if (static_cast<uint64_t>(span.end_line) > source.lines.size()) return {};
  const auto place = [&](int64_t line, int64_t column) {
    return source.lines[static_cast<size_t>(line - 1)] + static_cast<size_t>(column);
  };
  const size_t begin = place(span.line, span.column);
  const size_t end = place(span.end_line, span.end_column);
  if (begin >= end || end > source.text.size()) return {};
  return std::string(CalleeOf(std::string_view(source.text).substr(begin, end - begin)));
}

}  // namespace trainprof
