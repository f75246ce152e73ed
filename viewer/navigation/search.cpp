#include "viewer/navigation/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "trace/names.h"

namespace trainprof {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = names_internal::Lower(c);
  return lower;
}

// Takes the first word of `text`; a quoted part holds blanks.
std::string TakeWord(std::string_view& text) {
  std::string word;
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size() && (quoted || text[i] != ' '); ++i) {
    if (text[i] == '"') {
      quoted = !quoted;
    } else {
      word += text[i];
    }
  }
  text.remove_prefix(i);
  return word;
}

// "1.5ms"; at most INT64_MAX ns.
std::optional<Duration> ParseDuration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const double unit = text == "ns"   ? 1
                      : text == "us" ? 1e3
                      : text == "ms" ? 1e6
                      : text == "s"  ? 1e9
                                     : 0;
  if (unit == 0) return std::nullopt;
  constexpr double kMost = 9.2e18;
  return Duration{static_cast<int64_t>(std::min(number * unit + 0.5, kMost))};
}

Result<void> ParseTerm(const std::string& word, Query& query) {
  const std::string_view text = word;
  if (text.starts_with("name:")) {
    if (text.size() > 5) query.names.push_back(Lower(text.substr(5)));
    return {};
  }
  if (text.starts_with("rank:")) {
    int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), rank);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return Error{fmt::format("{}: write a number, rank:0", word)};
    }
    query.rank = rank;
    return {};
  }
  if (text.starts_with("dur>") || text.starts_with("dur<")) {
    const bool or_equal = text.substr(4).starts_with("=");
    const std::optional<Duration> bound = ParseDuration(text.substr(or_equal ? 5 : 4));
    if (!bound) return Error{fmt::format("{}: write a duration with its unit, dur>1ms", word)};
    const Duration step{or_equal ? 0 : 1};
    if (text[3] == '>') {
      query.shortest = std::max(query.shortest, *bound + step);
    } else {
      query.longest = std::min(query.longest, *bound - step);
    }
    return {};
  }
  query.names.push_back(Lower(text));
  return {};
}

// Per string of a trace: whether it contains all the names.
std::vector<bool> MatchingNames(const Trace& trace, const Query& query) {
  std::vector<bool> matches(trace.strings.size());
  for (uint32_t id = 0; id < matches.size(); ++id) {
    const std::string_view text = trace.Text(StringId{id});
    matches[id] = std::all_of(query.names.begin(), query.names.end(), [&](const std::string& name) {
      return names_internal::ContainsNoCase(text, name);
    });
  }
  return matches;
}

void SearchRank(const Lines& lines, uint32_t rank, const Query& query, Hits& hits) {
  const Trace& trace = *lines.ranks()[rank].trace;
  const std::vector<bool> matches = MatchingNames(trace, query);
  const auto look_in = [&](const EventColumns& table, Table kind) {
    size_t kept = 0;
    for (uint32_t row = 0; row < table.size(); ++row) {
      if (!matches[Index(table.name[row])]) continue;
      const Duration length = table.end[row] - table.begin[row];
      if (length < query.shortest || length > query.longest) continue;
      ++hits.total;
      if (++kept <= kMostHits) hits.events.push_back({rank, kind, Row{row}});
    }
  };
  look_in(trace.ranges, Table::kRanges);
  look_in(trace.api, Table::kApi);
  look_in(trace.device_ops, Table::kDeviceOps);
  look_in(trace.syncs, Table::kSyncs);
  look_in(trace.instants, Table::kInstants);
}

}  // namespace

Result<Query> ParseQuery(std::string_view text) {
  Query query;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return query;
    const std::string word = TakeWord(text);
    if (word.empty()) continue;
    const Result<void> parsed = ParseTerm(word, query);
    if (!parsed.ok()) return Error{parsed.error()};
  }
}

Hits Search(const Lines& lines, const Query& query) {
  Hits hits;
  if (query.Empty()) return hits;
  for (uint32_t rank = 0; rank < lines.ranks().size(); ++rank) {
    if (!query.rank || lines.ranks()[rank].trace->rank == *query.rank) {
      SearchRank(lines, rank, query, hits);
    }
  }
  const auto key = [&](const EventRef& event) {
    return std::tuple(lines.TimeOf(event).begin, event.rank, event.table, event.row);
  };
  std::sort(hits.events.begin(), hits.events.end(),
            [&](const EventRef& a, const EventRef& b) { return key(a) < key(b); });
  return hits;
}

std::optional<size_t> NextHit(const Lines& lines, const Hits& hits, TraceTime t) {
  if (hits.events.empty()) return std::nullopt;
  const auto next =
      std::partition_point(hits.events.begin(), hits.events.end(),
                           [&](const EventRef& e) { return lines.TimeOf(e).begin <= t; });
  return next == hits.events.end() ? 0 : static_cast<size_t>(next - hits.events.begin());
}

std::optional<size_t> PreviousHit(const Lines& lines, const Hits& hits, TraceTime t) {
  if (hits.events.empty()) return std::nullopt;
  const auto behind =
      std::partition_point(hits.events.begin(), hits.events.end(),
                           [&](const EventRef& e) { return lines.TimeOf(e).begin < t; });
  const auto at = static_cast<size_t>(behind - hits.events.begin());
  return (at == 0 ? hits.events.size() : at) - 1;
}

}  // namespace trainprof
