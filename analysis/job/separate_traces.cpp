// Which traces of a folder are the ranks of one job.
#include "analysis/job/separate_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "trace/io/printable.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr char kQuestion[] = "Name one of them";
constexpr size_t kMostListed = 40;
constexpr size_t kMostDigits = 6;  // longer numbers are times and process ids

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "rank3", "rank_3", "Rank-3" and "rank=3" in "trace.rank3.json"; not "frank3", "ranks3",
// "local_rank3", "rank3b". Nothing when the name says two different ones.
std::optional<int64_t> NumberAfter(std::string_view word, std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::set<int64_t> numbers;
  for (size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    const std::string_view before(name.data(), at);
    const bool local =
        before.ends_with("local_") || before.ends_with("local-") || before.ends_with("local.");
    if ((!before.empty() && IsLetter(before.back())) || local) continue;
    size_t first = at + word.size();
    if (first < name.size() && std::string_view("_-= ").find(name[first]) != std::string::npos) {
      ++first;
    }
    size_t end = first;
    while (end < name.size() && IsDigit(name[end])) ++end;
    const bool is_number =
        end > first && end - first <= kMostDigits && (end == name.size() || !IsLetter(name[end]));
    if (is_number) numbers.insert(std::stoll(name.substr(first, end - first)));
  }
  return numbers.size() == 1 ? std::optional(*numbers.begin()) : std::nullopt;
}

// "worker0" may be a process of the job or an experiment without loader workers: it is a rank where
// all files together count from 0.
std::map<fs::path, int64_t> WorkersOf(std::span<const fs::path> files) {
  std::map<fs::path, int64_t> workers;
  std::set<int64_t> numbers;
  for (const fs::path& file : files) {
    const auto number = NumberAfter("worker", file.filename().string());
    if (!number || *number >= static_cast<int64_t>(files.size())) return {};
    if (!numbers.insert(*number).second) return {};
    workers[file] = *number;
  }
  return workers;
}

}  // namespace

bool AsksForOneTrace(const std::string& error) { return error.ends_with(kQuestion); }

std::map<fs::path, int64_t> RanksOfNames(std::span<const fs::path> files) {
  std::map<fs::path, int64_t> ranks;
  for (const fs::path& file : files) {
    if (const auto rank = NumberAfter("rank", file.filename().string())) ranks[file] = *rank;
  }
  return ranks.empty() ? WorkersOf(files) : ranks;
}

RankGate::RankGate(fs::path folder, std::span<const fs::path> files, Visit visit)
    : folder_(std::move(folder)),
      files_(files.begin(), files.end()),
      visit_(std::move(visit)),
      named_(RanksOfNames(files)) {}

Result<void> RankGate::Pass(const fs::path& file, Trace trace) {
  const auto named = named_.find(file);
  if (!trace.rank_known && named != named_.end()) {
    trace.rank = named->second;
    trace.rank_known = true;
    trace.world_size = std::max(trace.world_size, trace.rank + 1);
  }
  std::string& said = said_[file];
  const std::string says = trace.rank_known ? fmt::format("rank {}", trace.rank) : "says no rank";
  said += (said.empty() ? "" : ", ") + says;
  if (held_) return Question();
  if (trace.rank_known) {
    if (!taken_.emplace(trace.rank, file).second) return Question();
    return visit_(std::move(trace));
  }
  if (!taken_.empty()) return Question();
  held_ = std::move(trace);
  return {};
}

Result<void> RankGate::Finish() { return held_ ? visit_(std::move(*held_)) : Result<void>(); }

Error RankGate::Question() const {
  std::string text = fmt::format(
      "{}: its traces are not the ranks of one job: each must say its rank (distributedInfo, or "
      "rank3 in the file's name), and no two the same.\n",
      folder_.string());
  for (size_t i = 0; i < std::min(files_.size(), kMostListed); ++i) {
    const fs::path& file = files_[i];
    const auto said = said_.find(file);
    const auto named = named_.find(file);
    const std::string says = said != said_.end()     ? said->second
                             : named != named_.end() ? fmt::format("rank {}", named->second)
                                                     : "not read";
    text += fmt::format("  {}: {}\n", OneLine(file.string()), says);
  }
  if (files_.size() > kMostListed) {
    text += fmt::format("  and {} more\n", files_.size() - kMostListed);
  }
  return Error{text + kQuestion};
}

}  // namespace trainprof
