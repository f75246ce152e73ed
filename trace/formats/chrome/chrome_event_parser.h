// Parses one event object of a Chrome trace at a time, in one pass over its bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/text_guesses.h"
#include "trace/formats/io/json_text.h"
#include "trace/formats/notes.h"

namespace trainprof {

class ChromeEventParser {
 public:
  explicit ChromeEventParser(TraceBuilder& builder);

  // Parses the object whose '{' is at p into `event`; p moves past its '}'. On kNeedMore or kBad
  // (p is then where it failed) nothing is counted and `event` is unspecified.
  json::Scan Parse(const char*& p, const char* end, ChromeEvent& event);
  // Counts what the last Parse had to repair.
  void Commit(ImportNotes& notes) const;
  // The same, one note for each.
  void AppendNotes(std::vector<trainprof::Note>& notes) const;

 private:
  using Scan = json::Scan;
  enum Field : uint32_t {
    kPhase = 1,
    kTime = 2,
    kDuration = 4,
    kName = 8,
    kCategory = 16,
    kPid = 32,
    kTid = 64,
    kId = 128,
    kBind = 256,
    kScope = 512,
    kArgs = 1024,
  };
  // Events of one kind repeat their arguments in the same order, so that the key after a key is
  // known nearly always; comparing with it saves hashing. By the id of the key before.
  struct NextKey {
    static constexpr size_t kLongest = 32;  // bytes with the closing quote
    uint64_t text[kLongest / 8] = {};
    uint64_t mask[kLongest / 8] = {};
    StringId before{UINT32_MAX};
    StringId key{};
    uint32_t length = 0;

    bool Matches(const char* p) const;
    void Set(StringId previous, std::string_view spelled, StringId id);
  };

  template <class Add>
  void EachNote(Add add) const;
  template <bool of_args>
  Scan ParseMembers(const char*& p, ChromeEvent& event);
  Scan ParseField(const char*& p, ChromeEvent& event);
  [[gnu::noinline]] Scan FieldValue(std::string_view key, const char*& p, ChromeEvent& event);
  [[gnu::noinline]] Scan ParseArgs(const char*& p, ChromeEvent& event);
  Scan ParseArg(const char*& p, ChromeEvent& event);
  bool IsRepeated(StringId key, const std::vector<Arg>& args);
  Scan ParseArgKey(const char*& p, StringId& key);
  Scan ParseKey(const char*& p, std::string_view& key);
  Scan ParseText(const char*& p, std::string_view& text);
  Scan ParseValue(const char*& p, StringId name, Arg& arg);
  bool Follows(const char* p, std::string_view text) const;
  Scan ParseString(const char*& p, StringId& guess, StringId& text);
  Scan ParseRaw(const char*& p, StringId& guess, StringId& text);
  Scan ParseTextOrRaw(const char*& p, StringId& guess, StringId& text);
  Scan ParseName(const char*& p, ChromeEvent& event);
  Scan ParseCategory(const char*& p, ChromeEvent& event);
  Scan ParseLetter(const char*& p, char& letter);
  Scan ParseTime(const char*& p, int64_t& ns, bool& present);
  Scan ParseId(const char*& p, ChromeId& id);
  // The rare forms, out of line: what they keep on the stack is no cost of the common ones.
  [[gnu::noinline]] Scan ParseNewString(const char*& p, StringId& guess, StringId& text);
  [[gnu::noinline]] Scan ParseNewRaw(const char*& p, StringId& guess, StringId& text);
  [[gnu::noinline]] Scan ParseBare(const char*& p, ArgValue& value);
  [[gnu::noinline]] Scan ParseNoText(const char*& p, StringId& text);
  [[gnu::noinline]] Scan ParseOddLetter(const char*& p, char& letter);
  [[gnu::noinline]] Scan ParseOddTime(const char*& p, int64_t& ns, bool& present);
  [[gnu::noinline]] Scan ParseOddId(const char*& p, ChromeId& id);
  [[gnu::noinline]] Scan ParseNewArgKey(const char*& p, StringId& key);
  [[gnu::noinline]] Scan KeepField(std::string_view key, const char*& p, ChromeEvent& event);
  void Decode(const Arg& arg, ChromeEvent& event) const;
  [[gnu::noinline]] void Note(trainprof::Note note) { noted_.push_back(note); }
  [[gnu::always_inline]] void Once(Field field) {
    if ((seen_fields_ & field) != 0) Note(trainprof::Note::kDuplicateKey);
    seen_fields_ |= field;
  }
  StringId Intern(std::string_view text) { return builder_.Intern(text); }

  TraceBuilder& builder_;
  const char* end_ = nullptr;
  uint32_t seen_fields_ = 0;  // a bit each, for repeated keys
  bool has_fields_ = false;   // a field was kept among the arguments
  uint64_t seen_keys_ = 0;    // a bit by the id of each argument's key
  // By key: the number of the last event of many arguments that has it.
  std::vector<uint32_t> long_event_of_key_;
  uint32_t long_event_ = 0;
  size_t noted_to_ = 0;   // arguments of the event that stand in the table
  bool is_long_ = false;  // the event at work uses the table
  json::Repairs repairs_;
  StringId last_key_ = kEmptyString;
  std::array<NextKey, 64> next_keys_;
  TextGuesses texts_;                            // of strings, each spelled in the file as it reads
  TextGuesses raws_;                             // of arrays and objects, each strict JSON
  StringId name_before_{}, name_before_that_{};  // of the last two events
  std::array<StringId, 64> last_values_{};       // texts of arguments, by their key's id
  std::vector<trainprof::Note> noted_;
  std::string scratch_;
  // Interned one after the other into the new table: key_device_ is the least, key_true_stream_ the
  // greatest.
  StringId key_device_, key_stream_, key_correlation_, key_bytes_, key_kind_, key_size_, key_stack_,
      key_opened_at_, key_true_tid_, key_true_stream_;
};

}  // namespace trainprof
