// trainprof doctor: what this machine can record, and how to fix what it cannot.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "profiler/cli/commands.h"
#include "profiler/doctor/machine.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kDoctorExamples[] = R"(Examples:
  trainprof doctor
  trainprof doctor -o /scratch/runs       check the folder that recordings go to
  trainprof doctor --format json

Exit code: 0 when a run can be recorded here, 1 when not.)";

constexpr int kSchemaVersion = 1;

struct DoctorFlags {
  std::string format = "text";
  MachineOptions machine;
};

const char* Word(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kMissing:
      return "off";
    case CheckState::kInfo:
      return "info";
    case CheckState::kFailed:
      return "FAIL";
  }
  return "";
}

bool RecordsGpu(const std::vector<MachineCheck>& checks) {
  return std::any_of(checks.begin(), checks.end(), [](const MachineCheck& check) {
    return check.id == "gpu_recording" && check.state == CheckState::kOk;
  });
}

void PrintText(const std::vector<MachineCheck>& checks) {
  for (const MachineCheck& check : checks) {
    Print(stdout, "{:<4}  {:<15}  {}\n", Word(check.state), check.title, check.finding);
    if (!check.fix.empty()) Print(stdout, "{:<23}fix: {}\n", "", check.fix);
  }
  if (CanRecord(checks)) {
    Print(stdout, "\ntrainprof run works here: it records {}.\n",
          RecordsGpu(checks) ? "NVTX ranges of the host and the work of the GPU"
                             : "NVTX ranges of the host, and no GPU work");
  } else {
    Print(stdout, "\ntrainprof run would record nothing here: fix what says FAIL.\n");
  }
}

void PrintJson(const std::vector<MachineCheck>& checks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MachineCheck& check : checks) {
    const char* state = check.state == CheckState::kFailed ? "fail" : Word(check.state);
    list.push_back({{"id", check.id},
                    {"title", check.title},
                    {"state", state},
                    {"finding", check.finding},
                    {"fix", check.fix}});
  }
  const nlohmann::ordered_json report = {
      {"schema_version", kSchemaVersion}, {"can_record", CanRecord(checks)}, {"checks", list}};
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  PrintRaw(stdout, HarmlessJson(report.dump(2, ' ', false, replace)) + "\n");
}

int Run(const DoctorFlags& flags) {
  SignalInbox inbox;
  const std::vector<MachineCheck> checks = CheckMachine(flags.machine, inbox);
  flags.format == "json" ? PrintJson(checks) : PrintText(checks);
  return CanRecord(checks) ? kExitOk : kExitGateFailed;
}

Action SetUpDoctor(CLI::App& parser) {
  // Shared: the parser writes to the flags, the action reads them afterwards.
  auto flags = std::make_shared<DoctorFlags>();
  parser.add_option("--format", flags->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
  parser.add_option("-o,--output", flags->machine.output, "Folder that recordings would go to")
      ->type_name("DIR");
  // For tests: reads a made-up /proc and /sys.
  parser.add_option("--root", flags->machine.root)->group("");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command DoctorCommand() {
  return {"doctor", "say what this machine can record, and how to fix what it cannot",
          kDoctorExamples, SetUpDoctor};
}

}  // namespace trainprof::cli
