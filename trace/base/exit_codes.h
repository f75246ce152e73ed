// Exit codes of every command but `run`, whose code is its child's.
#pragma once

namespace trainprof {

inline constexpr int kExitOk = 0;
inline constexpr int kExitGateFailed = 1;
inline constexpr int kExitNoDisplay = 1;  // of the viewer: nothing to draw with
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInconclusive = 3;
inline constexpr int kExitUnreadable = 4;
inline constexpr int kExitInternal = 70;      // EX_SOFTWARE of sysexits.h
inline constexpr int kExitUnwritable = 74;    // EX_IOERR: the output cannot be written
inline constexpr int kExitInterrupted = 130;  // Ctrl-C, as shells report it
// `run` failed before the program started; the convention of env(1), timeout(1) and nice(1).
inline constexpr int kExitRunFailed = 125;

}  // namespace trainprof
