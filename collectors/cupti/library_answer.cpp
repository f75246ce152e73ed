#include "collectors/cupti/library_answer.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/own_process.h"
#include "collectors/core/system.h"
#include "collectors/cupti/result_names.h"
#include "collectors/cupti/versions.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::collectors {
namespace {

// A report a question, and one more.
constexpr size_t kMostReports = 16;
constexpr size_t kMostVariables = 16 * 1024;

// The program's loader, which is the one that fits its libc; it starts any library that has an
// entry.
int FindLoader(dl_phdr_info* program, size_t, void* found) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    if (program->dlpi_phdr[i].p_type != PT_INTERP) continue;
    const auto address = program->dlpi_addr + program->dlpi_phdr[i].p_vaddr;
    *static_cast<const char**>(found) = reinterpret_cast<const char*>(address);
  }
  return 1;  // the first one is the program, others do not matter
}

bool Names(const char* entry, const char* variable) {
  const size_t length = strlen(variable);
  return strncmp(entry, variable, length) == 0 && entry[length] == '=';
}

// Ours, without what would start a recording. `out` has room for kMostVariables and an end.
void CopyEnvironment(const char** out) {
  size_t count = 0;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const bool ours = Names(*entry, "CUDA_INJECTION64_PATH") ||
                      Names(*entry, "NVTX_INJECTION64_PATH") ||
                      Names(*entry, recording::kEnvRunDirectory);
    if (!ours && count < kMostVariables) out[count++] = *entry;
  }
  out[count] = nullptr;
}

struct Pages {
  const char* environment[kMostVariables + 1];
  LibraryReport reports[kMostReports];
};

LibraryAnswer Ask(const char* injection, const char* driver, const char* library,
                  int64_t limit_ns) {
  LibraryAnswer answer{};
  const char* loader = nullptr;
  dl_iterate_phdr(FindLoader, &loader);
  auto* pages = static_cast<Pages*>(AllocatePages(sizeof(Pages)));
  if (loader == nullptr || pages == nullptr) {
    answer.start_error = loader == nullptr ? -ENOEXEC : -ENOMEM;
    if (pages != nullptr) ReleasePages(pages, sizeof(Pages));
    return answer;
  }
  CopyEnvironment(pages->environment);
  const char* arguments[] = {loader, injection, driver, library, nullptr};
  const OwnProcess process = {loader, arguments, pages->environment, limit_ns};
  const OwnProcessEnd end = RunOwnProcess(process, pages->reports, sizeof pages->reports);
  const size_t told = end.output_bytes / sizeof(LibraryReport);
  if (told > 0) answer.report = pages->reports[told - 1];
  answer.start_error = end.error;
  answer.signal = end.timed_out ? 0 : end.signal;
  answer.timed_out = end.timed_out;
  // It could be executed and yet not begin: the loader says why to nobody.
  if (told == 0 && end.error == 0 && end.signal == 0 && !end.timed_out) {
    answer.start_error = -ENOEXEC;
  }
  ReleasePages(pages, sizeof(Pages));
  return answer;
}

constexpr long Seconds(int64_t ns) { return static_cast<long>(ns / 1'000'000'000); }

}  // namespace

LibraryAnswer AskLibrary(const char* injection, const char* driver, const char* library,
                         int64_t limit_ns) {
  return Ask(injection, driver, library, limit_ns);
}

bool AskDriverToStart(const char* injection, const char* driver, int64_t limit_ns, char* what,
                      size_t size) {
  const LibraryAnswer answer = Ask(injection, driver, "", limit_ns);
  const LibraryReport& report = answer.report;
  if (answer.start_error != 0) {
    snprintf(what, size, "it could not be tried: %s", DescribeError(answer.start_error));
  } else if (answer.timed_out) {
    snprintf(what, size, "cuInit takes more than %ld s", Seconds(limit_ns));
  } else if (answer.signal != 0) {
    snprintf(what, size, "cuInit crashes with signal %d", answer.signal);
  } else if (report.error != 0) {
    snprintf(what, size, "cuInit gives error %d%s%s%s", report.error,
             report.detail[0] == 0 ? "" : " (", report.detail, report.detail[0] == 0 ? "" : ")");
  } else if (report.verdict != LibraryVerdict::kUsable) {
    snprintf(what, size, "%s", report.detail);
  } else {
    return true;
  }
  return false;
}

bool DriverMayBeTheCause(const LibraryAnswer& answer) {
  const bool ended = answer.signal != 0 || answer.timed_out;
  return (ended && answer.report.asking[0] != 0) ||
         answer.report.verdict == LibraryVerdict::kRefuses;
}

void DescribeAnswer(const char* library, const LibraryAnswer& answer, const char* driver_trouble,
                    char* out, size_t size) {
  const LibraryReport& report = answer.report;
  const char* path = report.path[0] == 0 ? library : report.path;
  char subject[kMostLibraryPath + 128];
  if (report.driver_version == 0) {
    snprintf(subject, sizeof subject, "libcupti at %s", path);
  } else {
    snprintf(subject, sizeof subject, "libcupti at %s, driver %d.%d", path,
             report.driver_version / 1000, report.driver_version % 1000 / 10);
  }
  const bool driver_fails = driver_trouble != nullptr && driver_trouble[0] != 0;
  char remedy[256];
  if (driver_fails) {
    snprintf(remedy, sizeof remedy, "The driver cannot be used: %s", driver_trouble);
  } else {
    snprintf(remedy, sizeof remedy, "Name the path of another one in TRAINPROF_CUPTI");
  }
  const char* asked = report.asking[0] == 0 ? "loading it" : report.asking;
  if (answer.start_error != 0) {
    snprintf(out, size, "%s: not loaded, as no process could be started to try it: %s", subject,
             DescribeError(answer.start_error));
  } else if (answer.timed_out) {
    snprintf(out, size, "%s: not loaded, as %s does not return within the time allowed. %s",
             subject, asked, remedy);
  } else if (answer.signal != 0) {
    snprintf(out, size, "%s: not loaded, as %s crashes with signal %d. %s", subject, asked,
             answer.signal, remedy);
  } else if (report.verdict == LibraryVerdict::kTooNew) {
    snprintf(out, size,
             "libcupti %d at %s, driver %d.%d: install the CUPTI of the driver's CUDA version, or "
             "name its path in TRAINPROF_CUPTI",
             report.cupti_version / 1000, path, report.driver_version / 1000,
             report.driver_version % 1000 / 10);
  } else if (report.verdict == LibraryVerdict::kRefuses) {
    snprintf(out, size, "%s: %s gives %s. %s", subject, asked, KnownResultName(report.error),
             remedy);
  } else if (report.verdict == LibraryVerdict::kNoSizes) {
    snprintf(out, size, "%s: it does not tell how large its records are. %s", subject, remedy);
  } else if (report.verdict == LibraryVerdict::kIncomplete) {
    snprintf(out, size, "libcupti at %s lacks %s", path, report.detail);
  } else if (report.verdict == LibraryVerdict::kNotLoaded) {
    snprintf(out, size, "libcupti at %s does not load: %s", path, report.detail);
  } else {
    snprintf(out, size, "%s: not loaded, as a process that tried it ended at %s", subject, asked);
  }
}

}  // namespace trainprof::collectors
