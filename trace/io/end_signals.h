// How a command that reads and writes ends when it is told to: at once, wherever it is, also while
// it waits for a FIFO.
#pragma once

#include <string>

namespace trainprof {

// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP remove half-written files and end the process:
// SIGINT with exit code 130, the others as if nobody had caught them. Signals that are ignored
// (nohup, a background job) stay so. `message` is printed for SIGINT.
void EndOnSignals(std::string message);

// Whether a line of progress stands on the terminal: it is wiped before the message.
void NoteProgressLine(bool shown);

}  // namespace trainprof
