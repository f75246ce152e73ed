// Which arguments of an event its row keeps.
#include "trace/formats/chrome/chrome_tables.h"

namespace trainprof {

ArgsId ChromeTables::ArgsOf(const ChromeEvent& event) {
  if (kept_ == KeptArgs::kAll || event.phase == 'C') return builder_.AddArgs(event.args);
  const Class cls = event.phase == 'X' ? ClassOf(event.category) : Class::kUnknown;
  kept_args_.clear();
  for (const Arg& arg : event.args) {
    if (IsRead(arg.key, cls)) kept_args_.push_back(arg);
  }
  return builder_.AddArgs(kept_args_);
}

// Whether an analysis reads the argument of a row of that class. What the file says of its own
// ranks stays, too: they are told apart by it.
bool ChromeTables::IsRead(StringId key, Class cls) {
  if (Index(key) >= use_of_key_.size()) use_of_key_.resize(builder_.trace().strings.size() * 2);
  ArgUse& use = use_of_key_[Index(key)];
  if (use == ArgUse::kUnknown) {
    const std::string_view word = builder_.trace().Text(key);
    const bool is_ours = word.find("trainprof") != std::string_view::npos || word == "^id";
    use = is_ours || word == "result"                    ? ArgUse::kAnyRow
          : word == "External id" || word == "Python id" ? ArgUse::kRange
          : word == "correlation"                        ? ArgUse::kRowOfUnknownKind
                                                         : ArgUse::kNone;
  }
  switch (use) {
    case ArgUse::kAnyRow:
      return true;
    case ArgUse::kRange:
      return cls != Class::kUnknown && cls < Class::kGpuAnnotation;
    case ArgUse::kRowOfUnknownKind:
      return cls == Class::kOther;
    default:
      return false;
  }
}

}  // namespace trainprof
