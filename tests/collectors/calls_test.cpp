// What NVTX calls become in the recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tests/collectors/recorded_run.h"
#include "tests/support/sanitized.h"

namespace trainprof::testing {
namespace {

std::string ArgText(const Trace& trace, ArgsId args, std::string_view key) {
  const auto value = trace.args.Find(args, trace.strings.Find(key));
  if (!value) return "absent";
  switch (value->type) {
    case ArgValue::Type::kInt:
      return std::to_string(value->integer);
    case ArgValue::Type::kDouble:
      return std::to_string(value->real);
    default:
      return std::string(trace.Text(value->text));
  }
}

class Everything : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_.Run({"everything"}), 0);
    trace_ = run_.ReadOne();
  }
  RecordedRun run_;
  Trace trace_;
};

TEST_F(Everything, PushesNestAndWideTextBecomesUtf8) {
  const auto outer = FindRange(trace_, "outer");
  const auto wide = FindRange(trace_, "w\u00efde \u4e16\U0001F600");
  ASSERT_TRUE(outer && wide);
  EXPECT_EQ(trace_.ranges.parent[Index(*wide)], *outer);
  EXPECT_LE(trace_.ranges.begin[Index(*outer)], trace_.ranges.begin[Index(*wide)]);
  EXPECT_GE(trace_.ranges.end(Index(*outer)), trace_.ranges.end(Index(*wide)));
}

TEST_F(Everything, EventsCarryDomainCategoryColourAndPayload) {
  const auto row = FindRange(trace_, "registered");
  ASSERT_TRUE(row);
  EXPECT_EQ(trace_.Text(trace_.ranges.category[Index(*row)]), "library");
  const ArgsId args = trace_.ranges.args[Index(*row)];
  EXPECT_EQ(ArgText(trace_, args, "category"), "allreduce");
  EXPECT_EQ(ArgText(trace_, args, "color"), std::to_string(0xFF112233));
  EXPECT_EQ(ArgText(trace_, args, "payload"), "42");
}

TEST_F(Everything, PayloadsOfEveryTypeKeepTheirValue) {
  std::map<std::string, std::string> payloads;
  for (size_t i = 0; i < trace_.instants.size(); ++i) {
    payloads[std::string(trace_.Text(trace_.instants.name[i]))] =
        ArgText(trace_, trace_.instants.args[i], "payload");
  }
  EXPECT_EQ(payloads["int64"], "-5");
  EXPECT_EQ(payloads["uint64"], std::to_string(UINT64_MAX));
  EXPECT_EQ(payloads["double"], "0.500000");
  EXPECT_EQ(payloads["int32"], "-7");
  EXPECT_EQ(payloads["uint32"], std::to_string(UINT32_MAX));
  EXPECT_EQ(payloads["float"], "0.250000");
  EXPECT_EQ(payloads["mark"], "absent");
  EXPECT_EQ(payloads.count("wide mark"), 1u);
}

TEST_F(Everything, RangesMayEndOnAnotherThread) {
  const auto row = FindRange(trace_, "crossing");
  ASSERT_TRUE(row);
  EXPECT_GT(trace_.ranges.end(Index(*row)), trace_.ranges.begin[Index(*row)]);
  EXPECT_EQ(CountRanges(trace_, "registered"), 2);  // the push, and the start with the same name
}

TEST_F(Everything, ThreadsBearTheNameTheyWereGiven) {
  const bool named =
      std::any_of(trace_.tracks.begin(), trace_.tracks.end(),
                  [&](const Track& track) { return trace_.Text(track.name) == "trainer"; });
  EXPECT_TRUE(named);
}

TEST_F(Everything, NullAndEmptyNamesAreEmpty) { EXPECT_EQ(CountRanges(trace_, ""), 2); }

TEST_F(Everything, AnOpenRangeIsClosedAtTheEndAndCounted) {
  EXPECT_EQ(trace_.quality.CountOf("open_range_at_end"), 1);
  EXPECT_EQ(CountRanges(trace_, "left open"), 1);
  for (const QualityItem& item : trace_.quality.items()) {
    if (item.kind == "overlapping_ranges") continue;  // those of two domains really do
    EXPECT_EQ(item.kind, "open_range_at_end") << "nothing else is wrong";
  }
}

TEST_F(Everything, TimesAreThoseOfTheRun) {
  // Time 0 is the creation of the run: milliseconds before the program, seconds at most.
  EXPECT_GT(trace_.extent.begin.ns, 0);
  EXPECT_LT(trace_.extent.end.ns, Seconds(60).ns);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  EXPECT_NEAR(static_cast<double>(trace_.base_ns), static_cast<double>(now.tv_sec) * 1e9, 60e9);
}

TEST(Libraries, ThatEmbedNvtxApartShareOneRecording) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"libraries"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(RangeNames(trace), (std::vector<std::string>{"program", "second library"}));
  EXPECT_EQ(trace.ranges.parent[1], Row{0});
}

TEST(Clock, BothClocksAgreeOnADuration) {
  for (const char* options : {"", "clock=monotonic"}) {
    RecordedRun run;
    run.environment[recording::kEnvOptions] = options;
    ASSERT_EQ(run.Run({"steps", "3", "50"}), 0);
    const Trace trace = run.ReadOne();
    const auto step = FindRange(trace, "step");
    ASSERT_TRUE(step);
    const int64_t ns = trace.ranges.interval(*step).Length().ns;
    EXPECT_GE(ns, Milliseconds(50).ns) << options;
    EXPECT_LT(ns, Milliseconds(1000).ns) << options;
  }
}

TEST(Threads, EachOfAHundredHasItsOwnTrack) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"threads", "100"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(trace.ranges.size(), 100u);
  std::set<TrackId> tracks(trace.ranges.track.begin(), trace.ranges.track.end());
  EXPECT_EQ(tracks.size(), 100u);
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST(Threads, ShortOnesShareTheirChunks) {
  constexpr int64_t kThreads = Rounds(100'000);
  RecordedRun run;
  ASSERT_EQ(run.Run({"short", std::to_string(kThreads)}), 0);
  EXPECT_EQ(CountRanges(run.ReadOne(), "short"), kThreads);
  // 56 bytes each, in a few chunks; a chunk a thread would be 1.6 GB.
  EXPECT_LT(run.BytesOfSegments(), 10u << 20);
}

// A clock that became due within a range took the room that the range's end was promised: at the end of a chunk this
// was written behind it, into whatever the program had there.
TEST(Threads, NoClockTakesTheRoomOfARangesEnd) {
  constexpr int64_t kThreads = 80;
  RecordedRun run;
  ASSERT_EQ(run.Run({"chunk_ends", std::to_string(kThreads)}), 0);
  const Trace trace = run.ReadOne();
  int64_t ranges = 0;
  for (int64_t i = 0; i < kThreads; ++i) ranges += 985 + i / 2 + 1 + i % 2;
  EXPECT_EQ(CountRanges(trace, "filled"), ranges);
  EXPECT_TRUE(trace.quality.items().empty()) << trace.quality.items().front().kind;
}

TEST(Threads, DestructorsMayStillCall) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"late"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "thread"), 1);
  EXPECT_EQ(CountRanges(trace, "late"), 1);
  EXPECT_EQ(CountRanges(trace, "at exit"), 1);
}

TEST(Depth, DeeperThanTheLimitIsCountedAndPopsStayPaired) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"deep", "2000"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "deep"), 1024);
  EXPECT_EQ(trace.quality.CountOf("dropped_too_deep"), 2000 - 1024);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 1);
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 0);
  EXPECT_EQ(CountRanges(trace, "after"), 1);
}

// The short way of a range's record (ThreadWriter::PushPlain) and the long one, by turns.
TEST(Names, OfRandomCallsAreAsTheProgramHadThem) {
  for (int seed = 1; seed <= (kIsSanitized ? 5 : 20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RecordedRun run;
    ASSERT_EQ(run.Run({"random", std::to_string(seed), "3000"}), 0) << run.output();
    std::vector<std::string> pushed;
    std::istringstream lines(run.output());
    for (std::string line; std::getline(lines, line);) pushed.push_back(line);
    const Trace trace = run.ReadOne();
    std::vector<std::string> names = RangeNames(trace);
    EXPECT_EQ(std::erase(names, "in the child"), 1u);
    ASSERT_EQ(names.size(), pushed.size());
    for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(names[i], pushed[i]) << "range " << i;
    EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 2) << "one too many in each process";
    EXPECT_EQ(trace.quality.items().size(), 1u);
  }
}

TEST(Names, VeryLongOnesAreCutBetweenCharactersAndCounted) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"long"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, std::string(4096, 'x')), 2);
  std::string wide;
  for (int i = 0; i < 4096 / 3; ++i) wide += "\u4e16";
  EXPECT_EQ(CountRanges(trace, wide), 1);
  EXPECT_EQ(CountRanges(trace, "after"), 1);
  EXPECT_EQ(trace.quality.CountOf("truncated_string"), 2);
  EXPECT_EQ(trace.quality.CountOf("bad_utf8"), 0);
}

TEST(Names, MoreThanTheCacheHoldsAreAllKept) {
  constexpr int64_t kNames = 50'000;
  RecordedRun run;
  ASSERT_EQ(run.Run({"names", std::to_string(kNames)}), 0);
  const Trace trace = run.ReadOne();
  std::map<std::string, int> counts;
  for (const std::string& name : RangeNames(trace)) ++counts[name];
  EXPECT_EQ(counts.size(), static_cast<size_t>(kNames));
  for (const auto& [name, count] : counts) ASSERT_EQ(count, 2) << name;
}

// The functions of the program that stand around each name's first range, "" where there is none.
std::map<std::string, std::string> Openers(const Trace& trace) {
  std::map<std::string, std::string> openers;
  for (const Opening& opening : trace.openings) {
    std::string& functions = openers[std::string(trace.Text(opening.name))];
    trace.stacks.ForEachFrame(opening.stack, [&](const CallFrame& frame) {
      EXPECT_EQ(trace.Text(frame.module).find("libtrainprof"), std::string::npos);
      if (frame.is_user) functions += std::string(trace.Text(frame.function)) + "\n";
      return true;
    });
  }
  return openers;
}

TEST(Names, FirstRangesSayWhereTheyAreOpened) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"deep", "20"}), 0);
  const std::map<std::string, std::string> deep = Openers(run.ReadOne());
  ASSERT_EQ(deep.size(), 2u);
  for (const char* name : {"deep", "after"}) {
    EXPECT_NE(deep.at(name).find("Deep"), std::string::npos) << name << ": " << deep.at(name);
    EXPECT_NE(deep.at(name).find("main"), std::string::npos) << name;
  }
  RecordedRun everything;
  ASSERT_EQ(everything.Run({"everything"}), 0);
  const std::map<std::string, std::string> openers = Openers(everything.ReadOne());
  for (const char* name : {"outer", "in default", "registered", "crossing", "left open"}) {
    EXPECT_TRUE(openers.count(name)) << name;
  }
  for (const auto& [name, functions] : openers) {
    EXPECT_NE(functions.find("Everything"), std::string::npos) << name << ": " << functions;
  }
}

// A program whose names are all different pays no more than a thousandth of its time for that.
TEST(Names, WhereTheyAreOpenedIsSaidOfFewWhereThereAreVeryMany) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"names", "50000"}), 0);
  const size_t openings = run.ReadOne().openings.size();
  EXPECT_GT(openings, 0u);
  EXPECT_LE(openings, 1000u);
}

TEST(Names, SmallStacksAreSpared) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"smallstacks"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(RangeNames(trace).size(), 3u);
  const std::map<std::string, std::string> openers = Openers(trace);
  EXPECT_EQ(openers.count("small"), 1u);
  EXPECT_EQ(openers.count("alternate"), 0u) << "a signal handler's own stack";
}

TEST(Signals, HandlersThatInterruptACallAreLostOrWholeAndCounted) {
  RecordedRun run;
  ASSERT_EQ(run.Run({"signals"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "main") % 1000, 1) << "thousands, and the first";
  EXPECT_GT(CountRanges(trace, "handler"), 0);
  EXPECT_EQ(CountRanges(trace, "main") + CountRanges(trace, "handler"),
            static_cast<int64_t>(trace.ranges.size()));
  EXPECT_EQ(trace.quality.CountOf("corrupt_chunk"), 0);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 0);
}

TEST(Descriptors, NoneStaysOpenInTheProgram) {
  RecordedRun run;
  const auto file = run.Scratch("own.txt");
  ASSERT_EQ(run.Run({"closeall", file.string()}), 0);
  EXPECT_EQ(std::filesystem::file_size(file), 8u * 4);
  EXPECT_EQ(CountRanges(run.ReadOne(), "second"), 100'000);
}

}  // namespace
}  // namespace trainprof::testing
