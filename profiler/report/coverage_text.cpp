#include "profiler/report/coverage_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/report/text.h"

namespace trainprof {
namespace {

// "0 to 3, 7" of numbers in order.
std::string Numbers(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text +=
        last == i ? std::to_string(numbers[i]) : fmt::format("{} to {}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string InParentheses(const std::string& text) {
  return text.empty() ? text : fmt::format(" ({})", text);
}

}  // namespace

std::string RanksText(const JobAnalysis& job, const std::vector<int64_t>& ranks) {
  if (job.ranks.size() < 2 || ranks.empty()) return {};
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", Numbers(ranks));
}

std::vector<std::string> DoubtLines(const JobAnalysis& job) {
  std::vector<std::string> lines;
  for (const Doubt& doubt : DoubtsOf(job)) {
    lines.push_back(doubt.text + InParentheses(RanksText(job, doubt.ranks)));
  }
  return lines;
}

std::vector<std::string> NotCheckedLines(const JobAnalysis& job) {
  std::vector<std::string> lines;
  for (const NotChecked& group : RulesNotChecked(job)) {
    lines.push_back(fmt::format("{}: {}{}", Join(group.rules), group.reason,
                                InParentheses(RanksText(job, group.ranks))));
  }
  return lines;
}

std::vector<std::string> QualityLines(const JobAnalysis& job) {
  std::vector<std::pair<QualityItem, std::vector<int64_t>>> kinds;
  const auto add = [&](const QualityItem& item, const RankAnalysis* rank) {
    auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return kind.first.kind == item.kind && kind.first.severity == item.severity;
    });
    if (same == kinds.end()) {
      same = kinds.insert(kinds.end(), {item, {}});
    } else {
      same->first.count += item.count;
    }
    if (rank != nullptr) same->second.push_back(rank->rank);
  };
  for (const RankAnalysis& rank : job.ranks) {
    for (const QualityItem& item : rank.quality) add(item, &rank);
  }
  for (const QualityItem& item : job.elsewhere) add(item, nullptr);
  std::vector<std::string> lines;
  for (const auto& [item, ranks] : kinds) {
    lines.push_back(fmt::format("{} x {} [{}] {}{}", item.count, item.kind, Name(item.severity),
                                item.detail, InParentheses(RanksText(job, ranks))));
  }
  return lines;
}

std::string UncoveredText(const RankAnalysis& rank) {
  const std::vector<UncoveredClass> classes = UncoveredClasses(rank);
  if (classes.empty()) return {};
  std::string text = fmt::format("{:.1f} % of the time: ", 100 * TotalShare(classes));
  for (const UncoveredClass& uncovered : classes) {
    text += &uncovered == &classes.front() ? "" : "; ";
    text += fmt::format(
        "{}{} {:.1f} %{}", uncovered.name.starts_with("idle_") ? "GPU idle, " : "", uncovered.title,
        100 * uncovered.share,
        uncovered.in_part.empty() ? "" : fmt::format(" (in part: {})", Join(uncovered.in_part)));
  }
  return text;
}

std::string NoFindingsText(const JobAnalysis& job, const RankAnalysis& rank) {
  const std::string who = job.ranks.size() > 1 ? fmt::format(" of rank {}", rank.rank) : "";
  if (rank.passed.empty()) return fmt::format("No rule could be checked{}", who);
  return fmt::format("No findings in what was checked{}: {}", who, Join(rank.passed));
}

}  // namespace trainprof
