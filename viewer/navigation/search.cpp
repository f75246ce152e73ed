#include "viewer/navigation/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "trace/base/cancel.h"
#include "trace/base/names.h"
#include "viewer/navigation/ruler.h"

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

// "1.5ms"
std::optional<Duration> ParseDuration(std::string_view text) {
  const std::optional<TraceTime> time = ParseTimeText(text);
  if (!time || time->ns < 0) return std::nullopt;
  return Duration{time->ns};
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
  if (text.starts_with("at:")) {
    query.at = ParseTimeText(text.substr(3));
    if (!query.at) return Error{fmt::format("{}: write a time with its unit, at:1.5s", word)};
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

bool IsOf(const Lines& lines, uint32_t rank, const Query& query) {
  return !query.rank || lines.ranks()[rank].trace->rank == *query.rank;
}

// Per string of a trace: whether it contains all the names.
std::vector<bool> MatchingNames(const Trace& trace, const Query& query) {
  constexpr size_t kBytesBetween = 1 << 18;  // two points where it may be cancelled
  size_t bytes = 0;
  std::vector<bool> matches(trace.strings.size());
  for (uint32_t id = 0; id < matches.size(); ++id) {
    const std::string_view text = trace.Text(StringId{id});
    bytes += text.size();
    if (bytes > kBytesBetween) {
      ThrowIfCancelled();
      bytes = 0;
    }
    matches[id] = std::all_of(query.names.begin(), query.names.end(), [&](const std::string& name) {
      return names_internal::ContainsNoCase(text, name);
    });
  }
  return matches;
}

bool IsHit(const EventColumns& table, uint32_t row, Duration shift, const std::vector<bool>& named,
           const Query& query) {
  if (query.at && table.begin[row] + shift != *query.at) return false;
  if (!named[Index(table.name[row])]) return false;
  const Duration length = table.end(row) - table.begin[row];
  return length >= query.shortest && length <= query.longest;
}

struct Found {
  TraceTime begin;  // on the axis of the lines
  EventRef event;

  bool operator<(const Found& other) const {
    if (begin != other.begin) return begin < other.begin;
    return std::tuple(event.rank, event.table, event.row) <
           std::tuple(other.event.rank, other.event.table, other.event.row);
  }
};

class Searcher {
 public:
  Searcher(const Lines& lines, std::atomic<size_t>* found, Hits& hits)
      : lines_(lines), found_(found), hits_(hits) {}

  void LookIn(uint32_t rank, Table kind, const EventColumns& table) {
    const std::vector<bool>& named = hits_.named[rank];
    std::vector<Found> part;
    for (uint32_t row = 0; row < table.size(); ++row) {
      CancelPoint(row);
      if (!IsHit(table, row, lines_.Shift(rank), named, hits_.query)) continue;
      if (part.size() < kMostHits) {
        part.push_back({table.begin[row] + lines_.Shift(rank), {rank, kind, Row{row}}});
      }
      ++hits_.total;
      if (found_ != nullptr) found_->store(hits_.total, std::memory_order_relaxed);
    }
    std::sort(part.begin(), part.end());
    if (!part.empty()) parts_.push_back(std::move(part));
  }

  // Of all parts, in order.
  void Merge() {
    struct Cursor {
      const Found* next;
      const Found* end;
    };
    std::vector<Cursor> cursors;
    size_t kept = 0;
    for (const std::vector<Found>& part : parts_) {
      cursors.push_back({part.data(), part.data() + part.size()});
      kept += part.size();
    }
    hits_.events.reserve(kept);
    const auto comes_behind = [](const Cursor& a, const Cursor& b) { return *b.next < *a.next; };
    std::make_heap(cursors.begin(), cursors.end(), comes_behind);
    while (!cursors.empty()) {
      CancelPoint(hits_.events.size());
      std::pop_heap(cursors.begin(), cursors.end(), comes_behind);
      Cursor& cursor = cursors.back();
      hits_.events.push_back(cursor.next->event);
      if (++cursor.next != cursor.end) {
        std::push_heap(cursors.begin(), cursors.end(), comes_behind);
      } else {
        cursors.pop_back();
      }
    }
  }

  void LookInRank(uint32_t rank) {
    const Trace& trace = *lines_.ranks()[rank].trace;
    hits_.named[rank] = MatchingNames(trace, hits_.query);
    ForEachEventTable(trace,
                      [&](Table kind, const EventColumns& table) { LookIn(rank, kind, table); });
  }

 private:
  const Lines& lines_;
  std::atomic<size_t>* const found_;
  Hits& hits_;
  std::vector<std::vector<Found>> parts_;  // by rank and table, each in order
};

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

bool Hits::Contain(const Lines& lines, const EventRef& event) const {
  if (event.rank >= named.size() || named[event.rank].empty()) return false;
  const EventColumns* table = ColumnsOf(*lines.ranks()[event.rank].trace, event.table);
  return table != nullptr &&
         IsHit(*table, Index(event.row), lines.Shift(event.rank), named[event.rank], query);
}

Hits Search(const Lines& lines, const Query& query, std::atomic<size_t>* found) {
  Hits hits;
  hits.query = query;
  if (query.Empty()) return hits;
  hits.named.resize(lines.ranks().size());
  Searcher searcher(lines, found, hits);
  for (uint32_t rank = 0; rank < lines.ranks().size(); ++rank) {
    if (IsOf(lines, rank, query)) searcher.LookInRank(rank);
  }
  searcher.Merge();
  return hits;
}

size_t EffortFor(const Lines& lines, const Query& query) {
  size_t effort = 0;
  for (uint32_t rank = 0; rank < lines.ranks().size(); ++rank) {
    if (!IsOf(lines, rank, query)) continue;
    const Trace& trace = *lines.ranks()[rank].trace;
    constexpr size_t kBytesLikeAnEvent = 8;
    effort += trace.strings.size_bytes() / kBytesLikeAnEvent * query.names.size();
    ForEachEventTable(trace, [&](Table, const EventColumns& table) { effort += table.size(); });
  }
  return effort;
}

std::optional<size_t> FindHit(const Lines& lines, const Hits& hits, const EventRef& event) {
  const auto key = [&](const EventRef& e) { return Found{lines.TimeOf(e).begin, e}; };
  const Found wanted = key(event);
  const auto at = std::partition_point(hits.events.begin(), hits.events.end(),
                                       [&](const EventRef& e) { return key(e) < wanted; });
  if (at == hits.events.end() || *at != event) return std::nullopt;
  return static_cast<size_t>(at - hits.events.begin());
}

std::pair<size_t, size_t> HitsWithin(const Lines& lines, const Hits& hits, const Interval& when) {
  const auto before = [&](TraceTime t) {
    return std::partition_point(hits.events.begin(), hits.events.end(),
                                [&](const EventRef& e) { return lines.TimeOf(e).begin < t; }) -
           hits.events.begin();
  };
  return {static_cast<size_t>(before(when.begin)), static_cast<size_t>(before(when.end))};
}

std::vector<int32_t> HitPixels(const Lines& lines, const Hits& hits, const Scale& scale) {
  std::vector<int32_t> pixels;
  auto [hit, last] = HitsWithin(lines, hits, scale.view);
  while (hit < last) {
    const TraceTime begin = lines.TimeOf(hits.events[hit]).begin;
    const auto pixel = static_cast<int32_t>(scale.PixelOf(begin));
    if (pixels.empty() || pixels.back() != pixel) pixels.push_back(pixel);
    const TraceTime end = std::max(scale.TimeAt(pixel + 1), begin + Nanoseconds(1));
    hit = std::max(hit + 1, HitsWithin(lines, hits, {end, scale.view.end}).first);
  }
  return pixels;
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
