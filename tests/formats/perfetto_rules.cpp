// Each rule on the whole document.
#include "tests/formats/perfetto_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace trainprof {
namespace {

using Json = nlohmann::json;

int64_t Ns(const Json& us) { return std::llround(us.get<double>() * 1000); }

// Metadata stands before all else and names each process and thread that has events. Imports keep
// the names that their source has, which may be none.
void ExpectMetadata(const Json& document, bool names_all) {
  std::map<int64_t, std::set<std::string>> of_process;
  std::map<std::pair<int64_t, int64_t>, std::set<std::string>> of_thread;
  bool events_began = false;
  for (const Json& event : document["traceEvents"]) {
    const std::pair<int64_t, int64_t> place(event["pid"], event["tid"]);
    const std::string name = event["name"];
    if (event["ph"] != "M") {
      events_began = true;
      if (!names_all) continue;
      EXPECT_TRUE(of_process[place.first].contains("process_name")) << event;
      EXPECT_TRUE(of_process[place.first].contains("process_sort_index")) << event;
      EXPECT_TRUE(of_thread[place].contains("thread_name")) << event;
      EXPECT_TRUE(of_thread[place].contains("thread_sort_index")) << event;
      continue;
    }
    EXPECT_FALSE(events_began) << "metadata after an event: " << event;
    if (name.starts_with("process_")) of_process[place.first].insert(name);
    if (name.starts_with("thread_")) {
      EXPECT_TRUE(of_thread[place].insert(name).second) << "named twice: " << event;
    }
  }
}

// Arrows bind on (category, name, id): each begins once, and ends bind to the slice around them.
void ExpectFlowIds(const Json& document) {
  std::set<std::tuple<std::string, std::string, int64_t>> starts;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] == "s") {
      EXPECT_TRUE(starts.emplace(event.value("cat", ""), event["name"], event["id"]).second)
          << "an arrow that begins twice: " << event;
    }
    if (event["ph"] == "f") {
      EXPECT_EQ(event.value("bp", ""), "e") << event;
    }
  }
}

}  // namespace

void ExpectPerfettoRules(const nlohmann::json& document, bool names_all) {
  ExpectMetadata(document, names_all);
  ExpectFlowIds(document);
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<int64_t, int64_t>>> slices;
  for (const Json& event : document["traceEvents"]) {
    ASSERT_TRUE(event["pid"].is_number_integer()) << event;
    ASSERT_TRUE(event["tid"].is_number_integer()) << event;
    if (event["ph"] != "X") continue;
    slices[{event["pid"], event["tid"]}].push_back(
        {Ns(event["ts"]), Ns(event["ts"]) + Ns(event["dur"])});
  }
  for (auto& [track, spans] : slices) {
    std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<int64_t> open;
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      ASSERT_TRUE(open.empty() || end <= open.back())
          << "overlap on " << track.first << "/" << track.second << " at " << begin;
      open.push_back(end);
    }
  }
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    const int64_t time = Ns(event["ts"]);
    const auto& spans = slices[{event["pid"], event["tid"]}];
    const bool inside = std::any_of(spans.begin(), spans.end(), [&](const auto& span) {
      return span.first <= time && time <= span.second;
    });
    EXPECT_TRUE(inside) << "arrow outside any slice: " << event;
  }
}

}  // namespace trainprof
