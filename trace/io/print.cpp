#include "trace/io/print.h"

#include <atomic>
#include <cerrno>

#include "trace/io/write_all.h"

namespace trainprof {
namespace {

std::atomic<int> g_standard_output_error{0};

}  // namespace

bool PrintRaw(std::FILE* out, std::string_view text) {
  int error = std::fflush(out) == 0 ? 0 : errno;
  if (error == 0) error = WriteAll(fileno(out), text);
  if (error == 0) return true;
  int none = 0;
  if (out == stdout) g_standard_output_error.compare_exchange_strong(none, error);
  return false;
}

void PrintText(std::FILE* out, std::string_view text, bool styled) {
  PrintRaw(out, SeveralLines(text, styled));
}

int StandardOutputError() { return g_standard_output_error; }

}  // namespace trainprof
