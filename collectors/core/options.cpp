#include "collectors/core/options.h"

#include <stdlib.h>
#include <string.h>

namespace trainprof::collectors {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

// A decimal number that begins at `text`; where it ends is left in *end. False when there is none.
bool ParseNumber(const char* text, const char** end, uint64_t* value) {
  const char* p = text;
  uint64_t number = 0;
  for (; *p >= '0' && *p <= '9'; ++p) {
    const uint64_t digit = static_cast<uint64_t>(*p - '0');
    if (number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  *end = p;
  *value = number;
  return p != text;
}

bool EndsHere(const char* p) { return *p == 0 || *p == ';'; }

// "100:110", "100:", ":110".
void ParseSteps(const char* text, Options* options) {
  uint64_t first = 0;
  uint64_t end = Options::kNoStep;
  const char* p = text;
  if (*p != ':' && !ParseNumber(p, &p, &first)) return;
  if (*p != ':') return;
  ++p;
  if (!EndsHere(p) && !ParseNumber(p, &p, &end)) return;
  if (!EndsHere(p) || end <= first) return;
  options->has_steps = true;
  options->first_step = first;
  options->end_step = end;
}

void ParseMilliseconds(const char* text, int64_t* ns) {
  uint64_t ms = 0;
  const char* end = text;
  if (!ParseNumber(text, &end, &ms) || !EndsHere(end)) return;
  constexpr uint64_t kMostMs = INT64_MAX / kNsPerMs;
  *ns = static_cast<int64_t>(ms < kMostMs ? ms : kMostMs) * kNsPerMs;
}

void CopyValue(const char* text, char* out, size_t size) {
  size_t n = 0;
  while (!EndsHere(text + n) && n + 1 < size) ++n;
  memcpy(out, text, n);
  out[n] = 0;
}

int RankFromEnvironment() {
  for (const char* name : recording::kRankVariables) {
    const char* text = secure_getenv(name);
    uint64_t rank = 0;
    const char* end = nullptr;
    if (text != nullptr && ParseNumber(text, &end, &rank) && *end == 0 && rank <= INT32_MAX) {
      return static_cast<int>(rank);
    }
  }
  return -1;
}

}  // namespace

void ParseOptions(const char* text, Options* options) {
  struct Key {
    const char* name;
    size_t length;
  };
  for (const char* p = text; *p != 0;) {
    const auto is = [p](Key key) { return strncmp(p, key.name, key.length) == 0; };
    if (is({"steps=", 6})) ParseSteps(p + 6, options);
    if (is({"delay_ms=", 9})) ParseMilliseconds(p + 9, &options->delay_ns);
    if (is({"duration_ms=", 12})) ParseMilliseconds(p + 12, &options->duration_ns);
    if (is({"pause_ms=", 9})) ParseMilliseconds(p + 9, &options->pause_ns);
    if (is({"capture=", 8})) CopyValue(p + 8, options->capture, sizeof options->capture);
    if (is({"buffers=", 8})) CopyValue(p + 8, options->buffers, sizeof options->buffers);
    if (is({"full=1", 6})) options->full = true;
    if (is({"gpu=off", 7})) options->gpu_off = true;
    if (is({"graphs=graph", 12})) options->whole_graphs = true;
    if (is({"command=off", 11})) options->no_command_line = true;
    if (is({"clock=monotonic", 15})) options->monotonic = true;
    while (!EndsHere(p)) ++p;
    if (*p == ';') ++p;
  }
}

bool ReadEnvironment(Options* options) {
  const char* directory = secure_getenv(recording::kEnvRunDirectory);
  if (directory == nullptr || directory[0] != '/') return false;
  const size_t length = strlen(directory);
  if (length >= sizeof options->run_directory) return false;
  *options = Options{};
  memcpy(options->run_directory, directory, length + 1);
  options->rank = RankFromEnvironment();
  const char* const memory = secure_getenv(recording::kEnvMemory);
  if (memory != nullptr) CopyValue(memory, options->memory_socket, sizeof options->memory_socket);
  if (const char* text = secure_getenv(recording::kEnvOptions)) {
    strncpy(options->text, text, sizeof options->text - 1);
    ParseOptions(text, options);
  }
  return true;
}

}  // namespace trainprof::collectors
