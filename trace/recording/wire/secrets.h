// Command lines are stored with the values of arguments that look like secrets left out: "--token
// ***", "HF_TOKEN=***", "https://me:***@host". What is no secret stays readable: "--tokenizer
// gpt2".
//
// A key says what its value is, by its words: "--hf-token", "hfToken" and "model.hf_token" are the
// words hf, token. Where a key may mean either (`--pad-token "<pad>"`) the word before decides,
// then the value. Header-only and free of the C++ runtime: the in-process library includes it.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace trainprof::recording {
namespace secrets {

using Text = std::string_view;

inline constexpr Text kMask = "***";

// A secret whatever its value; one unless the value looks harmless (a number, a path, "<pad>");
// none.
enum class KeyKind { kPlain, kMaybe, kSecret };

// Anywhere in a key.
inline constexpr Text kSecretWords[] = {
    "password",    "passwd",   "passphrase", "passcode",  "secret",        "secrets",
    "apikey",      "authkey",  "accesskey",  "secretkey", "privatekey",    "authtoken",
    "accesstoken", "apitoken", "apisecret",  "bearer",    "authorization", "cookie"};
// As the last word of a key.
inline constexpr Text kMaybeWords[] = {"token",     "key", "pass",       "pwd",        "pw",
                                       "signature", "sig", "credential", "credentials"};
// Before "token" or "key": it opens something, whatever the value.
inline constexpr Text kAccessWords[] = {
    "api",    "access",  "auth",     "hf",      "hub",     "huggingface", "wandb",   "github",
    "gitlab", "session", "security", "refresh", "private", "encryption",  "signing", "license"};
// Before "token": a word of a language model.
inline constexpr Text kTokenWords[] = {
    "pad",         "eos",         "bos",      "unk",      "mask",      "sep",       "cls",
    "special",     "image",       "video",    "audio",    "speech",    "text",      "stop",
    "start",       "end",         "begin",    "eot",      "eod",       "eom",       "prompt",
    "placeholder", "initializer", "trigger",  "instance", "class",     "next",      "new",
    "first",       "last",        "prefix",   "suffix",   "separator", "newline",   "decoder",
    "encoder",     "forced",      "modifier", "rare",     "user",      "assistant", "system",
    "tool",        "think",       "question", "answer",   "context",   "response",  "per",
    "drop",        "extra",       "max",      "min",      "num"};
// Before "key": a field of the data.
inline constexpr Text kFieldWords[] = {
    "sort",    "label",     "image",      "text",       "input",   "output",      "primary",
    "foreign", "partition", "group",      "data",       "dataset", "column",      "id",
    "target",  "query",     "caption",    "prompt",     "monitor", "metric",      "feature",
    "audio",   "video",     "class",      "name",       "field",   "index",       "state",
    "dict",    "model",     "ckpt",       "checkpoint", "batch",   "source",      "config",
    "json",    "cache",     "attention",  "value",      "score",   "reward",      "question",
    "answer",  "response",  "message",    "messages",   "content", "instruction", "context",
    "title",   "loss",      "map",        "param",      "weight",  "weights",     "layer",
    "module",  "embedding", "embeddings", "mask",       "num",     "shard",       "bucket",
    "object",  "hot",       "sample",     "time",       "join",    "lookup",      "best",
    "select",  "selection"};
// Behind a secret word: about it, not it.
inline constexpr Text kAboutWords[] = {"file",     "path",   "dir",     "folder", "name",   "names",
                                       "length",   "len",    "size",    "type",   "dim",    "dims",
                                       "env",      "var",    "manager", "policy", "prompt", "count",
                                       "provider", "format", "url",     "expiry", "ttl"};
inline constexpr Text kNoValues[] = {"",    "true", "false", "none", "null",
                                     "yes", "no",   "on",    "off",  "auto"};
// How tokens of well-known services begin; so many characters at least.
struct Shape {
  Text begin;
  size_t least;
};
inline constexpr Shape kShapes[] = {
    {"hf_", 20},    {"ghp_", 20}, {"gho_", 20},  {"ghs_", 20},  {"github_pat_", 20},
    {"glpat-", 20}, {"sk-", 20},  {"xoxb-", 20}, {"xoxp-", 20}, {"nvapi-", 20},
    {"AKIA", 20},   {"ASIA", 20}, {"pypi-", 40}, {"eyJ", 40},   {"AIza", 35}};

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }
constexpr bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }
constexpr char Lower(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool IsKeyCharacter(char c) {
  return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '/';
}
// What may stand before a key within an argument, and ends a value there.
constexpr bool IsSeparator(char c) {
  return IsSpace(c) || IsQuote(c) || std::string_view(";&|?,(){}[]<>").find(c) != Text::npos;
}

// string_view::substr may throw, which the in-process library cannot.
constexpr Text Part(Text text, size_t begin, size_t end = Text::npos) {
  if (end > text.size()) end = text.size();
  return begin < end ? Text(text.data() + begin, end - begin) : Text();
}

constexpr bool IsSameWord(Text a, Text lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != lower[i]) return false;
  }
  return true;
}
template <size_t N>
constexpr bool IsOneOf(Text word, const Text (&words)[N]) {
  for (const Text each : words) {
    if (IsSameWord(word, each)) return true;
  }
  return false;
}
constexpr bool EndsIn(Text word, Text lower) {
  return word.size() > lower.size() && IsSameWord(Part(word, word.size() - lower.size()), lower);
}

// The words of a key, split at what is no letter and within "apiKey"; digits at a word's end go.
struct Words {
  static constexpr size_t kMost = 16;
  Text word[kMost];
  size_t count = 0;
  // From the end; "" where there is none.
  constexpr Text Last(size_t i = 0) const { return i < count ? word[count - 1 - i] : Text(); }
};

constexpr Words WordsOf(Text key) {
  Words words;
  size_t begin = 0;
  const auto end_at = [&](size_t end) {
    Text word = Part(key, begin, end);
    while (!word.empty() && IsDigit(word.back())) word.remove_suffix(1);
    if (!word.empty() && words.count == Words::kMost) {
      for (size_t i = 1; i < Words::kMost; ++i) words.word[i - 1] = words.word[i];
      --words.count;
    }
    if (!word.empty()) words.word[words.count++] = word;
    begin = end;
  };
  for (size_t i = 0; i < key.size(); ++i) {
    if (!IsLetter(key[i]) && !IsDigit(key[i])) {
      end_at(i);
      begin = i + 1;
      continue;
    }
    const bool starts = i > begin && IsUpper(key[i]) &&
                        (!IsUpper(key[i - 1]) ||
                         (i + 1 < key.size() && IsLetter(key[i + 1]) && !IsUpper(key[i + 1])));
    if (starts) end_at(i);
  }
  end_at(key.size());
  return words;
}

constexpr KeyKind KindOf(Text key) {
  const Words words = WordsOf(key);
  const Text last = words.Last();
  const Text before = words.Last(1);
  if (IsOneOf(last, kAboutWords)) return KeyKind::kPlain;
  for (size_t i = 0; i < words.count; ++i) {
    const Text word = words.word[i];
    if (IsOneOf(word, kSecretWords) || EndsIn(word, "password") || EndsIn(word, "apikey")) {
      return KeyKind::kSecret;
    }
  }
  const bool access_key_id =
      IsSameWord(last, "id") && IsSameWord(before, "key") && IsSameWord(words.Last(2), "access");
  if (access_key_id) return KeyKind::kSecret;
  const bool plural = IsSameWord(last, "tokens") || IsSameWord(last, "keys");
  if (plural) return IsOneOf(before, kAccessWords) ? KeyKind::kSecret : KeyKind::kPlain;
  if (IsSameWord(last, "token")) {
    if (before.empty() || IsOneOf(before, kAccessWords)) return KeyKind::kSecret;
    return IsOneOf(before, kTokenWords) ? KeyKind::kPlain : KeyKind::kMaybe;
  }
  if (IsSameWord(last, "key")) {
    if (IsOneOf(before, kAccessWords)) return KeyKind::kSecret;
    return IsOneOf(before, kFieldWords) ? KeyKind::kPlain : KeyKind::kMaybe;
  }
  return IsOneOf(last, kMaybeWords) || EndsIn(last, "token") ? KeyKind::kMaybe : KeyKind::kPlain;
}

constexpr bool IsNumber(Text value) {
  constexpr size_t kLongestNumber = 9;  // longer ones are identifiers
  if (value.size() > kLongestNumber) return false;
  for (const char c : value) {
    if (!IsDigit(c) && c != '.' && c != '-' && c != 'e') return false;
  }
  return true;
}

constexpr bool IsPath(Text value) {
  if (value.starts_with("./") || value.starts_with("../") || value.starts_with("~/")) return true;
  return value.starts_with("/") && Part(value, 1).find('/') != Text::npos;
}

constexpr bool IsHarmless(KeyKind kind, Text value) {
  if (kind == KeyKind::kPlain || IsOneOf(value, kNoValues)) return true;
  if (kind == KeyKind::kSecret) return false;
  return IsNumber(value) || IsPath(value) || value.starts_with("<") || value.starts_with("[");
}

// The length of a well-known service's token at the beginning of the text, or 0.
constexpr size_t ShapeAt(Text text) {
  for (const Shape& shape : kShapes) {
    if (!text.starts_with(shape.begin)) continue;
    size_t end = shape.begin.size();
    while (end < text.size() && IsKeyCharacter(text[end])) ++end;
    if (end >= shape.least) return end;
  }
  return 0;
}

// Appends to a bounded buffer.
class Output {
 public:
  Output(char* out, size_t size) : out_(out), size_(size) {}
  void Put(Text text) {
    for (const char c : text) Put(c);
  }
  void Put(char c) {
    if (used_ < size_) out_[used_++] = c;
  }
  size_t used() const { return used_; }

 private:
  char* out_;
  size_t size_;
  size_t used_ = 0;
};

// One argument. `is_script`: it is what a shell runs (sh -c TEXT), of several commands.
class Argument {
 public:
  Argument(Text text, bool is_script, Output& out) : text_(text), script_(is_script), out_(out) {}

  void Mask() {
    while (at_ < text_.size()) {
      const bool starts =
          at_ == 0 || IsSeparator(text_[at_ - 1]) || text_[at_ - 1] == '=' || after_scheme_;
      after_scheme_ = false;
      if (MaskUserOfUrl()) continue;
      if (starts && (MaskShape() || MaskBearer() || MaskKey())) continue;
      out_.Put(text_[at_++]);
    }
  }

 private:
  Text Rest() const { return Part(text_, at_); }

  void Keep(size_t end) {
    out_.Put(Part(text_, at_, end));
    at_ = end;
  }
  void Replace(size_t end) {
    out_.Put(kMask);
    at_ = end;
  }

  // "://user:password@": also a lone user of a web address, which is a token.
  bool MaskUserOfUrl() {
    if (!Rest().starts_with("://")) return false;
    const bool is_web = at_ >= 4 && (Part(text_, at_ - 4, at_) == "http" || text_[at_ - 1] == 's');
    Keep(at_ + 3);
    after_scheme_ = true;
    size_t end = at_;
    while (end < text_.size() && !IsSeparator(text_[end]) && text_[end] != '/') ++end;
    const size_t host = Part(text_, 0, end).rfind('@');
    if (host == Text::npos || host < at_) return true;
    const size_t colon = Part(text_, 0, host).find(':', at_);
    if (colon != Text::npos) {
      if (ShapeAt(Rest()) > 0) Replace(colon);
      Keep(colon + 1);
      Replace(host);
    } else if (is_web) {
      Replace(host);
    }
    return true;
  }

  bool MaskShape() {
    const size_t length = ShapeAt(Rest());
    if (length == 0) return false;
    Replace(at_ + length);
    return true;
  }

  // "Bearer abc" and "Basic abc" of an Authorization header.
  bool MaskBearer() {
    size_t end = at_;
    while (end < text_.size() && IsLetter(text_[end])) ++end;
    const Text word = Part(text_, at_, end);
    if (!IsSameWord(word, "bearer") && !IsSameWord(word, "basic")) return false;
    size_t value = end;
    while (value < text_.size() && IsSpace(text_[value])) ++value;
    const bool is_header = IsSameWord(word, "bearer") || at_ > 0;
    if (value == end || value == text_.size() || !is_header) return false;
    Keep(value);
    Replace(EndOfWord(value));
    return true;
  }

  // Also across lines that a backslash joins.
  size_t EndOfSpace(size_t at) const {
    for (;; ++at) {
      if (Part(text_, at).starts_with("\\\n")) ++at;
      if (at >= text_.size() || !IsSpace(text_[at])) return at;
    }
  }

  size_t EndOfWord(size_t end) const {
    while (end < text_.size() && !IsSeparator(text_[end])) ++end;
    return end;
  }

  // "key=value", "key": "value", "Key: value", and in a script "--key value".
  bool MaskKey() {
    size_t end = at_;
    while (end < text_.size() && IsKeyCharacter(text_[end])) ++end;
    const Text key = Part(text_, at_, end);
    const KeyKind kind = key.empty() ? KeyKind::kPlain : KindOf(key);
    if (kind == KeyKind::kPlain) return false;
    size_t value = end;
    const bool quoted_key =
        at_ > 0 && IsQuote(text_[at_ - 1]) && value < text_.size() && IsQuote(text_[value]);
    if (quoted_key) ++value;
    if (value == text_.size()) return false;
    const bool is_colon = text_[value] == ':';
    const bool is_space = IsSpace(text_[value]) && key.starts_with("-");
    if (is_space) {
      value = EndOfSpace(value);
      return !Part(text_, value).starts_with("--") && MaskValue(kind, value, false);
    }
    if (text_[value] != '=' && !is_colon) return false;
    ++value;
    const bool spaced = value < text_.size() && IsSpace(text_[value]);
    const bool is_option = is_colon && !quoted_key && !spaced;  // "--rope token:5"
    if (is_option && (kind != KeyKind::kSecret || IsNumber(Part(text_, value, EndOfWord(value))))) {
      return false;
    }
    // Of a header, scheme and credentials: "Authorization: Digest abc".
    if (is_colon && IsSameWord(key, "authorization")) return MaskHeader(value);
    value = EndOfSpace(value);
    return MaskValue(kind, value, !is_colon && IsWhole(kind, value));
  }

  // Whether a value goes to the end of the argument, whatever is in it: "--password=a b",
  // "--env=DB_PASSWORD=a,b", and not "--env=LIMIT_KEY=3,A=4".
  bool IsWhole(KeyKind kind, size_t value) const {
    if (script_ || at_ == 0) return !script_;
    for (const char c : Part(text_, 0, at_)) {
      if (IsSeparator(c)) return false;
    }
    return !IsHarmless(kind, Part(text_, value, EndOfWord(value)));
  }

  bool MaskHeader(size_t value) {
    value = EndOfSpace(value);
    size_t end = value;
    while (end < text_.size() && !IsQuote(text_[end])) ++end;
    Keep(value);
    Replace(end);
    return true;
  }

  // `whole`: the value goes to the end of the argument, whatever is in it.
  bool MaskValue(KeyKind kind, size_t value, bool whole) {
    size_t end = whole ? text_.size() : EndOfWord(value);
    if (!whole && value < text_.size() && IsQuote(text_[value])) {
      const size_t close = text_.find(text_[value], value + 1);
      ++value;
      end = close == Text::npos ? text_.size() : close;
    }
    if (IsHarmless(kind, Part(text_, value, end))) return false;
    Keep(value);
    Replace(end);
    return true;
  }

  Text text_;
  bool script_;
  Output& out_;
  size_t at_ = 0;
  bool after_scheme_ = false;
};

constexpr bool IsFlag(Text argument) { return argument.size() > 1 && argument[0] == '-'; }

// "-c", "-lc": what follows is a script.
constexpr bool TakesScript(Text argument) {
  if (argument.size() < 2 || argument[0] != '-' || argument.back() != 'c') return false;
  for (const char c : Part(argument, 1)) {
    if (!IsLetter(c)) return false;
  }
  return true;
}

// Whether an argument that is a key by itself is followed by its value.
constexpr KeyKind KindOfNext(Text argument) {
  if (IsSameWord(argument, "bearer")) return KeyKind::kSecret;
  if (!IsFlag(argument) || argument.find('=') != Text::npos) return KeyKind::kPlain;
  for (const char c : argument) {
    if (!IsKeyCharacter(c)) return KeyKind::kPlain;
  }
  const Words words = WordsOf(argument);
  if (words.count > 0 && IsSameWord(words.word[0], "no")) return KeyKind::kPlain;
  return KindOf(argument);
}

}  // namespace secrets

// Copies a command line of zero-terminated arguments, as /proc/PID/cmdline has it, without its
// secrets. Returns the bytes written, at most out_size.
inline size_t MaskSecrets(const char* arguments, size_t size, char separator, char* out,
                          size_t out_size) {
  using secrets::KeyKind;
  secrets::Output output(out, out_size);
  KeyKind next = KeyKind::kPlain;
  bool is_script = false;
  for (size_t begin = 0; begin < size;) {
    const secrets::Text rest(arguments + begin, size - begin);
    const size_t length = rest.find('\0') == secrets::Text::npos ? rest.size() : rest.find('\0');
    const secrets::Text argument = secrets::Part(rest, 0, length);
    if (begin > 0) output.Put(separator);
    const bool is_value = !argument.starts_with("--") && argument.size() != 2;
    if (next != KeyKind::kPlain && (is_value || !secrets::IsFlag(argument)) &&
        !secrets::IsHarmless(next, argument)) {
      output.Put(secrets::kMask);
      next = KeyKind::kPlain;
      is_script = false;
    } else {
      secrets::Argument(argument, is_script, output).Mask();
      next = secrets::KindOfNext(argument);
      is_script = secrets::TakesScript(argument);
    }
    begin += length + 1;
  }
  return output.used();
}

}  // namespace trainprof::recording
