#include "profiler/report/for_people.h"

#include "trace/io/printable.h"

namespace trainprof {
namespace {

template <class... Texts>
void MakeOneLine(Texts&... texts) {
  ((texts = OneLine(texts)), ...);
}

void Clean(Finding& finding) {
  MakeOneLine(finding.rule, finding.code, finding.title, finding.advice, finding.verify);
  finding.fix = SeveralLines(finding.fix);
  for (Site& site : finding.where) MakeOneLine(site.file, site.function, site.op);
  for (Evidence& item : finding.evidence) MakeOneLine(item.what);
  for (std::string& reason : finding.confidence_reasons) MakeOneLine(reason);
}

void Clean(std::vector<OtherItem>& items) {
  for (OtherItem& item : items) {
    MakeOneLine(item.name);
    Clean(item.inside);
  }
}

void Clean(std::vector<LineTime>& lines) {
  for (LineTime& line : lines) {
    MakeOneLine(line.file, line.function, line.callee, line.callee_file);
  }
}

void Clean(std::vector<OperatorTime>& times) {
  for (OperatorTime& time : times) MakeOneLine(time.name);
}

void Clean(std::vector<QualityItem>& items) {
  for (QualityItem& item : items) MakeOneLine(item.kind, item.detail);
}

void Clean(RankAnalysis& rank) {
  MakeOneLine(rank.path, rank.device_doubt, rank.launch_doubt);
  Clean(rank.host_other.items);
  for (PhaseLines& phase : rank.host_lines) {
    Clean(phase.lines);
    Clean(phase.producers);
  }
  Clean(rank.operators.operators);
  Clean(rank.operators.modules);
  for (MemorySeries& series : rank.memory.series) MakeOneLine(series.name);
  for (KeptMemory& kept : rank.memory.kept) {
    MakeOneLine(kept.kind, kept.device, kept.variable, kept.file, kept.caller_file);
  }
  MakeOneLine(rank.memory.missing);
  for (DeviceReport& device : rank.devices) MakeOneLine(device.name, device.compute_capability);
  for (Finding& finding : rank.findings) Clean(finding);
  for (SkippedRule& skipped : rank.skipped) MakeOneLine(skipped.rule, skipped.reason);
  for (std::string& rule : rank.passed) MakeOneLine(rule);
  Clean(rank.quality);
  for (auto& [name, value] : rank.environment) MakeOneLine(name, value);
  for (HostFact& fact : rank.host_facts) MakeOneLine(fact.id, fact.text, fact.unit);
}

}  // namespace

JobAnalysis ForPeople(JobAnalysis job) {
  MakeOneLine(job.kind, job.path);
  for (RankAnalysis& rank : job.ranks) Clean(rank);
  for (std::string& process : job.other_processes) MakeOneLine(process);
  for (std::string& file : job.run.missing_files) MakeOneLine(file);
  Clean(job.elsewhere);
  return job;
}

}  // namespace trainprof
