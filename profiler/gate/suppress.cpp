#include "profiler/gate/suppress.h"

#include <fmt/format.h>

#include "profiler/gate/small_file.h"

namespace trainprof {
namespace {

constexpr std::string_view kMarker = "trainprof: ignore[";
constexpr size_t kMostSourceBytes = size_t{4} << 20;  // of a file that a person has written

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

bool IsComment(std::string_view line) { return line.starts_with('#') || line.starts_with("//"); }

// What follows the marker's brackets, where they name the rule: "ignore[TP301, cpu-tensor] -- logging".
std::optional<std::string> ReasonIn(std::string_view line, std::string_view rule,
                                    std::string_view code) {
  const size_t comment = std::min(line.find('#'), line.find("//"));
  const size_t marker = line.find(kMarker);
  if (marker == std::string_view::npos || comment > marker) return std::nullopt;
  std::string_view rest = line.substr(marker + kMarker.size());
  const size_t close = rest.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view names = rest.substr(0, close);
  std::string_view reason = Trimmed(rest.substr(close + 1));
  while (reason.starts_with('-') || reason.starts_with(':')) reason.remove_prefix(1);
  while (!names.empty()) {
    const size_t comma = names.find(',');
    const std::string_view name = Trimmed(names.substr(0, comma));
    if (name == rule || name == code) return std::string(Trimmed(reason));
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
  return std::nullopt;
}

bool Matches(std::string_view match, const Site& site) {
  if (match.empty()) return true;
  const std::string place = fmt::format("{}:{}", site.file, site.line);
  // A line's number ends where it ends: ":8" is no part of ":88".
  const bool names_line = site.line > 0 && place.ends_with(match) &&
                          (match.size() == place.size() || match.find(':') != std::string::npos);
  const auto in = [&](const std::string& text) { return text.find(match) != std::string::npos; };
  return names_line || in(site.file) || in(site.function) || in(site.op);
}

}  // namespace

Suppressor::Suppressor(const Policy& policy, Date today)
    : policy_(policy), today_(today), is_used_(policy.suppressions.size(), false) {}

bool Suppressor::IsOver(const Suppression& suppression) const {
  return suppression.expires && *suppression.expires < today_;
}

std::optional<Suppressed> Suppressor::By(std::string_view rule, std::string_view code,
                                         const Site& site) {
  std::optional<Suppressed> by;
  for (size_t i = 0; i < policy_.suppressions.size(); ++i) {
    const Suppression& suppression = policy_.suppressions[i];
    if (suppression.rule != rule || !Matches(suppression.match, site)) continue;
    is_used_[i] = true;
    if (IsOver(suppression) || by) continue;
    by.emplace().why = fmt::format(
        "{} ({}{})", suppression.reason, suppression.where,
        suppression.expires ? fmt::format(", until {}", TextOf(*suppression.expires)) : "");
  }
  return by ? by : InSource(rule, code, site);
}

std::vector<std::string> Suppressor::Complaints() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < policy_.suppressions.size(); ++i) {
    const Suppression& suppression = policy_.suppressions[i];
    if (IsOver(suppression)) {
      lines.push_back(fmt::format("{}: this suppression of {} expired on {}", suppression.where,
                                  suppression.rule, TextOf(*suppression.expires)));
    } else if (!is_used_[i]) {
      lines.push_back(fmt::format("{}: this suppression of {} matches nothing: it can go",
                                  suppression.where, suppression.rule));
    }
  }
  return lines;
}

// At the end of the line itself, or alone on the one above it.
std::optional<Suppressed> Suppressor::InSource(std::string_view rule, std::string_view code,
                                               const Site& site) {
  if (site.file.empty() || site.line <= 0) return std::nullopt;
  const std::vector<std::string>* const lines = LinesOf(site.file);
  const auto line = static_cast<size_t>(site.line);
  if (lines == nullptr || line > lines->size()) return std::nullopt;
  std::optional<std::string> reason = ReasonIn((*lines)[line - 1], rule, code);
  if (!reason && line > 1 && IsComment(Trimmed((*lines)[line - 2]))) {
    reason = ReasonIn((*lines)[line - 2], rule, code);
  }
  if (!reason) return std::nullopt;
  return Suppressed{fmt::format("{}(comment at {}:{})", reason->empty() ? "" : *reason + " ",
                                site.file, site.line),
                    true};
}

// Where it was recorded, or the same file in another checkout.
const std::vector<std::string>* Suppressor::LinesOf(const std::string& file) {
  const auto [known, is_new] = files_.try_emplace(file);
  if (is_new) {
    Result<std::string> text = ReadSmallFile(file, kMostSourceBytes);
    if (!text.ok()) text = ReadSmallFile(FileBelowHere(file), kMostSourceBytes);
    if (text.ok()) {
      std::string_view rest = text.value();
      while (!rest.empty()) {
        const size_t end = rest.find('\n');
        known->second.emplace_back(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      }
    }
  }
  return known->second.empty() ? nullptr : &known->second;
}

}  // namespace trainprof
