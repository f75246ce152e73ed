#include "trace/symbols/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

namespace trainprof {
namespace {

constexpr size_t kMaxMangledBytes = 4096;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSequence(char c) { return IsDigit(c) || (c >= 'A' && c <= 'Z'); }

// How large the text of a mangled name may be, from above. Substitutions (S1_) repeat what was
// spelled before, and those that repeat others double the text with each level. Number n names the
// n-th component; this count leaves some out and adds none, so that its text is at most the largest
// that was complete when the count got there.
class TextBound {
 public:
  explicit TextBound(std::string_view mangled) : rest_(mangled) {}

  size_t Compute() {
    while (!rest_.empty() && total_ <= kMaxDemangledBytes) Next();
    return total_;
  }

 private:
  struct Open {
    char kind;
    size_t size = 0;
    size_t component = 0;   // of it, the one that is being spelled
    bool has_type = false;  // of a literal: what follows is its value
  };
  static constexpr size_t kLetterText = 20;  // "unsigned long long"
  static constexpr int64_t kNotCounted = 2;  // the function's own name and arguments

  void Next() {
    const char c = rest_.front();
    if (IsDigit(c)) return Digits();
    rest_.remove_prefix(1);
    switch (c) {
      case 'S':
        return Substitution();
      case 'T':
        return Add(largest_);
      case 'L':
        if (!rest_.empty() && rest_.front() >= 'a' && rest_.front() <= 'z') {
          rest_.remove_prefix(std::min(rest_.find('E'), rest_.size()));
        }
        [[fallthrough]];
      case 'I':
      case 'N':
      case 'J':
      case 'X':
      case 'F':
      case 'Z':
        open_.push_back({c});
        return;
      case 'U':  // a lambda: its parameters end with E
        if (rest_.starts_with('l')) open_.push_back({c});
        return;
      case 'D':
        if (rest_.starts_with('T') || rest_.starts_with('t')) {
          rest_.remove_prefix(1);
          open_.push_back({c});
        }
        return;
      case 'E':
        return Close();
      default:
        return Add(kLetterText);
    }
  }

  void Digits() {
    size_t length = 0;
    while (!rest_.empty() && IsDigit(rest_.front())) {
      length = std::min<size_t>(length * 10 + static_cast<size_t>(rest_.front() - '0'), 1 << 20);
      rest_.remove_prefix(1);
    }
    if (!open_.empty() && open_.back().kind == 'L' && open_.back().has_type) return Add(20);
    rest_.remove_prefix(std::min(length, rest_.size()));
    Add(length + 2);
    Complete();
  }

  void Substitution() {
    if (!rest_.empty() && rest_.front() >= 'a' && rest_.front() <= 'z') {
      rest_.remove_prefix(1);
      constexpr size_t kStandardText = 80;  // std::basic_string<char, std::char_traits<char>, ...
      return Add(kStandardText);
    }
    size_t number = 0;
    size_t digits = 0;
    for (; !rest_.empty() && IsSequence(rest_.front()); rest_.remove_prefix(1), ++digits) {
      const char c = rest_.front();
      number = number * 36 + static_cast<size_t>(IsDigit(c) ? c - '0' : c - 'A' + 10);
      number = std::min<size_t>(number, kMaxMangledBytes);
    }
    if (digits > 0) ++number;
    if (!rest_.empty() && rest_.front() == '_') rest_.remove_prefix(1);
    Add(number < largest_at_.size() ? largest_at_[number] : largest_);
  }

  void Close() {
    if (open_.empty()) return;
    const Open done = open_.back();
    open_.pop_back();
    // Arguments complete what stands before them; all else is a component of its own.
    Add(done.size + 4, done.kind == 'I');
    if (done.kind == 'I') Complete();
  }

  // A component is whole: what comes later may repeat it.
  void Complete() {
    if (++components_ > kNotCounted) largest_at_.push_back(largest_);
  }

  void Add(size_t size, bool extends = false) {
    Open& in = open_.empty() ? top_ : open_.back();
    in.size += size;
    in.has_type = true;
    in.component = extends || in.kind == 'N' ? in.component + size : size;
    largest_ = std::max(largest_, in.component);
    total_ += size;
  }

  std::string_view rest_;
  Open top_{'T'};
  std::vector<Open> open_;
  std::vector<size_t> largest_at_;
  size_t largest_ = 0;
  size_t total_ = 0;  // counts what is nested once a level
  int64_t components_ = 0;
};

}  // namespace

std::string Demangled(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangledBytes ||
      TextBound(name.substr(2)).Compute() > kMaxDemangledBytes) {
    return std::string(name);
  }
  struct Free {
    void operator()(char* text) const { free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status));
  return status == 0 && text ? std::string(text.get()) : std::string(name);
}

std::string ShortFunctionName(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (depth == 0 && demangled.substr(i).starts_with(kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (depth == 0 && out.ends_with("operator") && (c == '<' || c == '>' || c == '(')) {
      // An operator's own signs: "operator()", "operator<<", "operator->".
      const size_t end = c == '(' ? i + 2 : demangled.find_first_of("(<", i + 2);
      out += demangled.substr(i, std::min(end, demangled.size()) - i);
      i = std::min(end, demangled.size()) - 1;
    } else if (c == '(' && depth == 0) {
      break;  // its parameters
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      --depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  // Templates name their result first.
  const size_t space = out.rfind(' ');
  if (space != std::string::npos && out.find("operator") == std::string::npos &&
      out.find(kAnonymous) == std::string::npos) {
    out.erase(0, space + 1);
  }
  return out.empty() ? std::string(demangled) : out;
}

}  // namespace trainprof
