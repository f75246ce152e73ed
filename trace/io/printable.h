// Names, paths and messages may hold anything: a trace is somebody else's file. Text that people
// read shows what a terminal would obey, or what would deceive the eye, as an escape: control
// characters (C0, DEL, C1), bytes that are no UTF-8, marks that turn the direction of writing, and
// other invisible ones.
//
//   OneLine("a\x1b[2Jb\n")  // "a\\x1b[2Jb\\n"
#pragma once

#include <string>
#include <string_view>

namespace trainprof {

// Line ends and tabs are escaped too: a name cannot pretend to be a line of ours.
std::string OneLine(std::string_view text);

// Line ends and tabs stay. With `styled`, so do the sequences below.
std::string SeveralLines(std::string_view text, bool styled = false);

// All that trainprof makes bold or colours its reports with.
inline constexpr std::string_view kStyleEnd = "\033[0m";
inline constexpr std::string_view kBold = "\033[1m";
inline constexpr std::string_view kRed = "\033[31m";
inline constexpr std::string_view kYellow = "\033[33m";
inline constexpr std::string_view kCyan = "\033[36m";

// The same characters of a JSON text as \u escapes: the same JSON. It is valid UTF-8 already.
std::string HarmlessJson(std::string_view json);

// As one word of a command to be pasted. What a terminal would obey, or a paste would run, goes in
// bash's own escapes: $'a\n'.
std::string ShellQuoted(std::string_view word);

}  // namespace trainprof
