// The command that shows this view again, and what it says of the selection.
#include <fmt/format.h>

#include <algorithm>

#include "trace/io/printable.h"
#include "viewer/navigation/ruler.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr std::string_view kTo = "..";

// "12ms..15.5ms"; nothing for anything else.
std::optional<Interval> ParseRange(std::string_view text) {
  const size_t between = text.find(kTo);
  if (between == std::string_view::npos) return std::nullopt;
  const auto begin = ParseTimeText(text.substr(0, between));
  const auto end = ParseTimeText(text.substr(between + kTo.size()));
  if (!begin || !end) return std::nullopt;
  return Interval{*begin, *end};
}

// Exact, and one word: "12.5ms".
std::string TimeWord(TraceTime t) {
  std::string text = ExactText(t - TraceTime{0});
  std::erase(text, ' ');
  return text;
}

// What finds an event: where it begins, how long it is, whose it is and its name, as far as a
// quoted part can hold that. Empty for what cannot be searched for.
std::string QueryFor(const State& state, const EventRef& event) {
  constexpr size_t kEnough = 120;
  const Trace& trace = state.document->TraceOf(event.rank);
  if (ColumnsOf(trace, event.table) == nullptr) return {};
  const Interval time = state.lines().TimeOf(event);
  std::string_view name = state.lines().NameOf(event);
  name = name.substr(0, std::min(name.find_first_of("\"\n\r"), kEnough));
  while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0x80) != 0) {
    name.remove_suffix(1);  // perhaps half a character
  }
  const std::string length = TimeWord(TraceTime{time.Length().ns});
  std::string query =
      fmt::format("name:\"{}\" at:{} dur>={} dur<={}", name, TimeWord(time.begin), length, length);
  if (state.document->ranks() > 1) query += fmt::format(" rank:{}", trace.rank);
  return query;
}

}  // namespace

std::string ErrorInSelection(std::string_view text) {
  if (const std::optional<Interval> range = ParseRange(text)) {
    return range->Empty() ? "the range's end is not after its start" : "";
  }
  const Result<Query> query = ParseQuery(text);
  if (!query.ok()) return query.error();
  return query.value().Empty() ? "write what to search for, or a range: 12ms..15ms" : "";
}

void SelectByText(State& state, std::string_view text) {
  if (!state.HasLines()) return;
  state.message = ErrorInSelection(text);
  if (!state.message.empty()) return;
  if (const std::optional<Interval> range = ParseRange(text)) {
    if (Intersect(*range, state.lines().extent()).Empty()) {
      state.message = fmt::format("There is nothing in {}", text);
      return;
    }
    return SelectRange(state, *range);
  }
  const Query query = ParseQuery(text).value();
  const Hits hits = Search(state.lines(), query);
  auto best = hits.events.begin();
  if (query.at) {
    best = std::min_element(best, hits.events.end(), [&](const EventRef& a, const EventRef& b) {
      return state.lines().NameOf(a).size() < state.lines().NameOf(b).size();
    });
  }
  if (best == hits.events.end()) {
    state.message = fmt::format("No event matches {}", text);
    return;
  }
  Select(state, *best);
}

std::string ViewLink(const State& state) {
  if (!state.document) return "trainprof view";
  // It is run elsewhere, too.
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(state.document->path(), error);
  std::string link = "trainprof view " + ShellQuoted(path.string());
  if (!state.HasLines()) return link;
  // With = since a time may be negative: the axis begins where the first event does.
  const auto add = [&](const char* flag, const std::string& value) {
    link += fmt::format(" --{}={}", flag, ShellQuoted(value));
  };
  const uint32_t rank = ShownRank(state);
  if (rank != state.document->SlowestRank()) {
    add("rank", fmt::format("{}", NumberOfRank(state, rank)));
  }
  if (state.finding) add("finding", fmt::format("{}", state.finding->index + 1));
  if (state.range) {
    add("select", TimeWord(state.range->begin) + std::string(kTo) + TimeWord(state.range->end));
  }
  if (state.selected) {
    if (const std::string query = QueryFor(state, *state.selected); !query.empty()) {
      add("select", query);
    }
  }
  add("from", TimeWord(state.view.begin));
  add("to", TimeWord(state.view.end));
  return link;
}

}  // namespace trainprof
