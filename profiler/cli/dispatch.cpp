// From argv to the command that runs: help, version, unknown commands, usage errors.
#include "profiler/cli/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "profiler/cli/commands.h"
#include "profiler/cli/suggest.h"
#include "trace/io/print.h"

#ifndef TRAINPROF_VERSION
#error "profiler/CMakeLists.txt defines TRAINPROF_VERSION"
#endif

namespace trainprof::cli {
namespace {

int PrintOverview(std::FILE* out, int exit_code) {
  Print(out,
        "trainprof says why a training run is slow, in milliseconds per step.\n\n"
        "Usage: trainprof COMMAND [options]\n\nCommands:\n");
  for (const Command& command : Commands()) {
    Print(out, "  {:<9} {}\n", command.name, command.summary);
  }
  Print(out,
        "\nStart here:\n  trainprof run -- python train.py\n\n"
        "trainprof help COMMAND   flags and examples of one command\n"
        "trainprof --version\n");
  return exit_code;
}

int UnknownCommand(const std::string& name, const std::vector<std::string>& rest) {
  Print(stderr, "trainprof: {}\nAll commands: trainprof --help\n",
        UnknownCommandMessage(name, rest));
  return kExitUsage;
}

// True when the token is a flag that takes the next token as its value: "-o", not "-oDIR".
bool TakesNextToken(const CLI::App& parser, const std::string& token) {
  const CLI::Option* option = parser.get_option_no_throw(token);
  return option != nullptr && option->get_items_expected_min() > 0;
}

// Splits "flags [--] program..." where the program begins: after "--", or at the first token that
// is neither a flag nor a flag's value. What follows never passes through the parser.
struct SplitArguments {
  std::vector<std::string> flags;
  ProgramArguments program;
};

SplitArguments Split(const CLI::App& parser, const std::vector<std::string>& tokens) {
  SplitArguments split;
  size_t i = 0;
  for (; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (token == "--") {
      ++i;
      break;
    }
    if (token.size() < 2 || token[0] != '-') break;
    split.flags.push_back(token);
    if (TakesNextToken(parser, token) && i + 1 < tokens.size()) {
      split.flags.push_back(tokens[++i]);
    }
  }
  split.program.assign(tokens.begin() + static_cast<ptrdiff_t>(std::min(i, tokens.size())),
                       tokens.end());
  return split;
}

// Help of a command that starts a program: CLI11 does not know that one follows the flags.
class ProgramFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("\nUsage: {} [OPTIONS] -- PROGRAM [ARGUMENTS...]\n", name);
  }
};

int UsageError(const Command& command, const std::string& message) {
  Print(stderr, "trainprof {0}: {1}\nFlags and examples: trainprof help {0}\n", command.name,
        message);
  return command.usage_error_code;
}

int RunOne(const Command& command, const std::vector<std::string>& tokens) {
  CLI::App parser(command.summary, fmt::format("trainprof {}", command.name));
  parser.footer(command.examples);
  if (command.takes_program) parser.formatter(std::make_shared<ProgramFormatter>());
  const Action action = command.set_up(parser);
  SplitArguments split;
  if (command.takes_program) {
    split = Split(parser, tokens);
  } else {
    split.flags = tokens;
  }
  if (!parser.get_prefix_command()) {
    if (const auto unknown = UnknownOption(parser, split.flags)) {
      return UsageError(command, *unknown);
    }
  }
  try {
    // The parser wants its tokens last first.
    parser.parse(std::vector<std::string>(split.flags.rbegin(), split.flags.rend()));
  } catch (const CLI::CallForHelp&) {
    PrintText(stdout, parser.help() + "\n");
    return kExitOk;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extra = parser.remaining();
    return UsageError(command, fmt::format("'{}' is one argument too many",
                                           extra.empty() ? std::string() : extra.front()));
  } catch (const CLI::ParseError& error) {
    return UsageError(command, error.what());
  }
  if (command.takes_program && split.program.empty()) {
    Print(stderr, "trainprof {0}: name a program to start, e.g. trainprof {0} -- python train.py\n",
          command.name);
    return command.usage_error_code;
  }
  return action(split.program);
}

}  // namespace

int Dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return PrintOverview(stderr, kExitUsage);
  const std::string& first = arguments[0];
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (first == "--version" || first == "-V" || first == "version") {
    Print(stdout, "trainprof {}\n", TRAINPROF_VERSION);
    return kExitOk;
  }
  const bool asks_help = first == "--help" || first == "-h" || first == "help";
  if (asks_help && rest.empty()) return PrintOverview(stdout, kExitOk);
  const std::string& name = asks_help ? rest[0] : first;
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    return UnknownCommand(name, asks_help ? std::vector<std::string>{} : rest);
  }
  return RunOne(*command, asks_help ? std::vector<std::string>{"--help"} : rest);
}

}  // namespace trainprof::cli
