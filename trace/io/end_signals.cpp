#include "trace/io/end_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "trace/base/exit_codes.h"
#include "trace/io/output_file.h"

namespace trainprof {
namespace {

// What the handler reads: complete before it is installed, never changed afterwards.
std::string* g_message = nullptr;
pid_t g_owner = 0;
std::atomic<bool> g_progress_shown{false};

void Say(std::string_view text) { (void)!write(STDERR_FILENO, text.data(), text.size()); }

void End(int signal_number) {
  if (getpid() != g_owner) _exit(kExitInterrupted);  // a forked helper: it has nothing to say
  RemoveUnfinishedFiles();
  if (g_progress_shown.load()) Say("\r\033[K");
  if (signal_number != SIGINT) {
    // SA_RESETHAND: the default comes when this handler returns.
    raise(signal_number);
    return;
  }
  Say(*g_message);
  _exit(kExitInterrupted);
}

}  // namespace

void EndOnSignals(std::string message) {
  if (g_message != nullptr) return;
  g_message = new std::string(std::move(message));  // outlives all: signals come until the end
  g_owner = getpid();
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal_number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction end {};
    end.sa_handler = End;
    end.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal_number, &end, nullptr);
  }
}

void NoteProgressLine(bool shown) { g_progress_shown = shown; }

}  // namespace trainprof
