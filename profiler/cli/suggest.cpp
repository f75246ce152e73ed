#include "profiler/cli/suggest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "profiler/cli/commands.h"
#include "trace/base/nearest.h"
#include "trace/io/printable.h"

namespace trainprof::cli {
namespace {

namespace fs = std::filesystem;

// Of the options that help shows, without their dashes.
std::vector<std::string> LongNames(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

// The other command that has the option `name`, or nullptr.
const Command* OwnerOf(const std::string& name) {
  for (const Command& command : Commands()) {
    CLI::App parser;
    const Action action = command.set_up(parser);
    const std::vector<std::string> names = LongNames(parser);
    if (name != "help" && std::find(names.begin(), names.end(), name) != names.end()) {
      return &command;
    }
  }
  return nullptr;
}

// `option` as it was typed, dashes included.
std::string NoSuchOptionOf(const CLI::App& parser, const std::string& option) {
  const Command* const owner =
      OwnerOf(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  return NoSuchOption(
      option, LongNames(parser),
      owner == nullptr ? "" : fmt::format(" It is one of 'trainprof {}'.", owner->name));
}

// "-qf": each letter an option, up to one that takes the rest, or the next word, as its value.
// Returns whether the next word is a value; `unknown` the first letter that is no option.
bool ReadLetters(const CLI::App& parser, std::string_view letters, std::string& unknown) {
  for (size_t i = 0; i < letters.size(); ++i) {
    const std::string name = fmt::format("-{}", letters[i]);
    const CLI::Option* const option = parser.get_option_no_throw(name);
    if (option == nullptr) {
      unknown = name;
      return false;
    }
    if (TakesValue(*option)) return i + 1 == letters.size();
  }
  return false;
}

struct OtherWord {
  const char* word;
  const char* command;
};

// What other tools call it.
constexpr OtherWord kOtherWords[] = {
    {"record", "run"},       {"profile", "run"},    {"launch", "run"},      {"start", "run"},
    {"exec", "run"},         {"execute", "run"},    {"trace", "run"},       {"capture", "run"},
    {"collect", "run"},      {"stat", "report"},    {"stats", "report"},    {"summary", "report"},
    {"summarize", "report"}, {"print", "report"},   {"text", "report"},     {"verdict", "report"},
    {"rules", "explain"},    {"json", "report"},    {"analyse", "analyze"}, {"analysis", "analyze"},
    {"inspect", "analyze"},  {"import", "analyze"}, {"load", "analyze"},    {"open", "view"},
    {"show", "view"},        {"gui", "view"},       {"ui", "view"},         {"timeline", "view"},
    {"viewer", "view"},      {"display", "view"},   {"plot", "view"},       {"screenshot", "view"},
    {"convert", "export"},   {"dump", "export"},    {"save", "export"},     {"merge", "export"},
    {"perfetto", "export"},  {"chrome", "export"},  {"gate", "check"},      {"test", "check"},
    {"verify", "check"},     {"validate", "check"}, {"ci", "check"},        {"assert", "check"},
    {"info", "doctor"},      {"status", "doctor"},  {"diagnose", "doctor"}, {"setup", "doctor"},
    {"devices", "doctor"},   {"compare", "diff"},   {"comparison", "diff"}, {"cmp", "diff"},
    {"budget", "check"},     {"vs", "diff"},
};

bool IsInPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr || name.find('/') != std::string::npos) return false;
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((fs::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string Line(const std::string& name, const std::vector<std::string>& rest) {
  std::string line = ShellQuoted(name);
  for (const std::string& word : rest) line += " " + ShellQuoted(word);
  return line;
}

// Of a word that is a file here, or a program: what is done with it. "" for any other word.
std::string OfFileOrProgram(const std::string& name, const std::vector<std::string>& rest) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(name, error);
  if (is_file && name.ends_with(".py")) return "trainprof run -- python " + Line(name, rest);
  const bool starts =
      is_file && name.find('/') != std::string::npos && access(name.c_str(), X_OK) == 0;
  if (starts || (!fs::exists(name, error) && IsInPath(name))) {
    return "trainprof run -- " + Line(name, rest);
  }
  if (fs::exists(name, error)) return "trainprof report " + ShellQuoted(name);
  return {};
}

}  // namespace

std::optional<std::string> UnknownOption(const CLI::App& parser,
                                         const std::vector<std::string>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (token == "--") break;
    if (token.size() < 2 || token[0] != '-') continue;
    const std::string name = token.substr(0, token.find('='));
    if (token[1] == '-') {
      const CLI::Option* const option = parser.get_option_no_throw(name);
      if (option == nullptr) return NoSuchOptionOf(parser, name);
      if (TakesValue(*option) && name.size() == token.size()) ++i;
      continue;
    }
    // "-format json" would be read as "-f ormat".
    if (name.size() > 2 && parser.get_option_no_throw("-" + name) != nullptr) {
      return fmt::format("there is no option '{0}'. Did you mean '-{0}'?", name);
    }
    std::string unknown;
    if (ReadLetters(parser, std::string_view(token).substr(1), unknown)) ++i;
    if (!unknown.empty()) return NoSuchOptionOf(parser, name.size() > 2 ? name : unknown);
  }
  return std::nullopt;
}

std::string UnknownCommandMessage(const std::string& name, const std::vector<std::string>& rest) {
  if (name.starts_with('-')) {
    if (name == "--" && !rest.empty()) {
      return "name a command first. To profile a program: trainprof run " + Line(name, rest);
    }
    return NoSuchOption(name, {"help", "version"}, " Name a command first");
  }
  const std::string message = fmt::format("there is no command '{}'.", name);
  for (const OtherWord& other : kOtherWords) {
    if (name == other.word) {
      return message + fmt::format(" Did you mean '{}', \"{}\"?", other.command,
                                   FindCommand(other.command)->summary);
    }
  }
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  // A file or a program of that very name is surer than a likeness.
  if (const std::string line = OfFileOrProgram(name, rest); !line.empty()) {
    return message + " Did you mean: " + line;
  }
  const std::string nearest = Nearest(name, names);
  if (!nearest.empty()) return message + fmt::format(" Did you mean '{}'?", nearest);
  return message + " To profile a program: trainprof run -- " + Line(name, rest);
}

}  // namespace trainprof::cli
