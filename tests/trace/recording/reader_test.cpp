#include "trace/recording/read/reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/wire/format.h"
#include "trace/tables/environment.h"

namespace trainprof::testing {
namespace {

using recording::PackHead;
using recording::RecordType;

// Trace times of a segment without a run: base is the segment's opening, tick 0.
class Reader : public ::testing::Test {
 protected:
  Reader() : writer_(scratch_ / "pid-1") {}

  Trace Read() {
    writer_.Finish();
    auto ranks = recording::ReadRecording(scratch_.path());
    EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
    return ranks.ok() ? std::move(ranks.value().at(0).trace) : Trace{};
  }

  // "name begin-end, ..." in table order.
  static std::string Ranges(const Trace& trace) {
    std::string text;
    for (size_t i = 0; i < trace.ranges.size(); ++i) {
      if (!text.empty()) text += ", ";
      text += std::string(trace.Text(trace.ranges.name[i])) + " " +
              std::to_string(trace.ranges.begin[i].ns) + "-" +
              std::to_string(trace.ranges.end(i).ns);
    }
    return text;
  }

  ScratchFolder scratch_;
  SegmentWriter writer_;
};

TEST_F(Reader, WhatThreadsUsedIsCountedFromLookToLook) {
  constexpr auto kLook = recording::RecordType::kThreadTime;
  const auto look = [&](uint64_t ticks, uint64_t cpu_ns, uint64_t waits, uint64_t interruptions) {
    writer_.Raw({recording::PackHead(kLook, 4, 0, 0), ticks, cpu_ns, waits | interruptions << 32});
  };
  writer_.BeginWriter(0, 100, "main");
  look(1000, 500, 7, UINT32_MAX);
  look(2000, 1400, 8, 1);  // counts of 32 bits go round
  look(2000, 1400, 8, 1);  // no time between
  look(3000, 100, 8, 1);   // goes back: damage
  writer_.Thread(4000, 101, "second");
  look(5000, 900, 1, 0);
  look(6000, 1000, 2, 0);
  const Trace trace = Read();
  const CpuTimeTable& times = trace.cpu_times;
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times.begin, (std::vector{TraceTime{2000}, TraceTime{6000}}));
  EXPECT_EQ(times.wall_ns, (std::vector<int64_t>{1000, 1000}));
  EXPECT_EQ(times.cpu_ns, (std::vector<int64_t>{900, 100}));
  EXPECT_EQ(times.waits, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(times.interruptions, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(trace.tracks[Index(times.track[1])].tid, 101);
}

TEST_F(Reader, PairsPushesWithPopsShortAndLong) {
  writer_.BeginWriter(0, 100, "main");
  writer_.Push("step", 1000);
  writer_.ShortPush("data", 1100);
  writer_.ShortPop(1200);
  writer_.Push("forward", 1300);
  writer_.Pop(1400);
  writer_.ShortPop(1500);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "step 1000-1500, data 1100-1200, forward 1300-1400");
  EXPECT_EQ(trace.ranges.parent[1], Row{0});
  EXPECT_EQ(trace.Text(trace.tracks[0].name), "main");
  EXPECT_EQ(trace.tracks[0].tid, 100);
  EXPECT_EQ(trace.source, SourceKind::kRecording);
  EXPECT_EQ(trace.base_ns, SegmentWriter::kRealOffsetNs + SegmentWriter::kOriginNs);
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST_F(Reader, ParentsStandBeforeChildrenOfTheSameTimes) {
  writer_.BeginWriter(0, 100);
  writer_.Push("outer", 1000);
  writer_.Push("inner", 1000);
  writer_.Pop(1000);
  writer_.Pop(1000);
  EXPECT_EQ(Ranges(Read()), "outer 1000-1000, inner 1000-1000");
}

TEST_F(Reader, KeepsTheStacksOfDomainsApart) {
  writer_.BeginWriter(0, 100);
  writer_.Domain(3, "nccl");
  writer_.Push("a", 10);
  writer_.Push("b", 20, 3);
  writer_.Pop(30);
  writer_.ShortPop(40, 3);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "a 10-30, b 20-40");
  EXPECT_EQ(trace.Text(trace.ranges.category[0]), "");
  EXPECT_EQ(trace.Text(trace.ranges.category[1]), "nccl");
}

TEST_F(Reader, FindsNamesThatAreGivenLaterOrElsewhere) {
  writer_.BeginWriter(0, 100);
  writer_.Push("a", 10, 2, {recording::PackAttributes(0, 0, 9)});
  writer_.Pop(20, 2);
  writer_.BeginWriter(1, 101);
  writer_.Domain(2, "library");
  writer_.Category(2, 9, "collective");
  writer_.ThreadName(100, "trainer");
  const Trace trace = Read();
  EXPECT_EQ(trace.Text(trace.ranges.category[0]), "library");
  const auto category = trace.args.Find(trace.ranges.args[0], trace.strings.Find("category"));
  ASSERT_TRUE(category);
  EXPECT_EQ(trace.Text(category->text), "collective");
  EXPECT_EQ(trace.Text(trace.tracks[0].name), "trainer");
}

TEST_F(Reader, StartsEndOnAnyThreadEvenOneReadEarlier) {
  writer_.BeginWriter(0, 100);
  writer_.End(500, 77);
  writer_.BeginWriter(1, 101);
  writer_.Start("crossing", 400, 77);
  writer_.Start("never ended", 450, 78);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "crossing 400-500, never ended 450-10000000000");
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 1);
}

TEST_F(Reader, WholeRangesFindTheirPlaceAmongPushesAndPops) {
  writer_.BeginWriter(0, 100);
  writer_.Range("forward", 1100, 1300);
  writer_.ShortPush("user", 1000);
  writer_.Range("backward", 1300, 1500);
  writer_.ShortPop(1600);
  writer_.Range("step", 900, 1700);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "step 900-1700, user 1000-1600, forward 1100-1300, backward 1300-1500");
  EXPECT_EQ(trace.ranges.parent[3], Row{1});
  EXPECT_EQ(trace.ranges.parent[1], Row{0});
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST_F(Reader, AWholeRangeThatEndsBeforeItBeginsIsCounted) {
  writer_.BeginWriter(0, 100);
  writer_.Range("backwards", 1300, 1200);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "backwards 1300-1300");
  EXPECT_EQ(trace.quality.CountOf("negative_duration"), 1);
}

TEST_F(Reader, StacksOfWholeRangesAreFramesFromTheInnermostOn) {
  writer_.BeginWriter(0, 100);
  writer_.Range("input", 1000, 1100,
                "12 <listcomp> /my code/data.py\n-1 f x.py\n7 g\nnothing\n7  x.py\n7 g \n"
                "34 main /my code/train.py\n5 cut /of");
  const Trace trace = Read();
  std::string frames;
  trace.stacks.ForEachFrame(trace.ranges.stack[0], [&](const CallFrame& frame) {
    frames += std::to_string(frame.line) + " " + std::string(trace.Text(frame.function)) + " in " +
              std::string(trace.Text(frame.file)) + (frame.is_user ? ", user's; " : "; ");
    return true;
  });
  EXPECT_EQ(frames,
            "12 <listcomp> in /my code/data.py, user's; 34 main in /my code/train.py, user's; ");
}

TEST_F(Reader, TheCellsOfANotebookHaveTheNamesThatTheirUserKnows) {
  writer_.BeginWriter(0, 100);
  writer_.Range("forward", 1000, 1100, "2 loss /tmp/ipykernel_1/5.py\n9 main /tmp/own.py\n");
  writer_.Fact("python.cell /tmp/ipykernel_1/5.py", "In[3]");
  writer_.Fact("torch.version", "2.13");
  const Trace trace = Read();
  std::vector<std::string> files;
  trace.stacks.ForEachFrame(trace.ranges.stack[0], [&](const CallFrame& frame) {
    files.emplace_back(trace.Text(frame.file));
    EXPECT_TRUE(frame.is_user);
    return true;
  });
  EXPECT_EQ(files, (std::vector<std::string>{"In[3]", "/tmp/own.py"}));
  EXPECT_EQ(EnvironmentValue(trace.environment, "torch.version"), "2.13");
  for (const auto& [name, value] : trace.environment) EXPECT_NE(value, "In[3]") << name;
}

TEST_F(Reader, MarksOfMemoryAreACountersValues) {
  writer_.BeginWriter(1, 10);
  writer_.Domain(1, recording::kMemoryDomain);
  const auto payload = static_cast<uint64_t>(recording::PayloadType::kUint64);
  writer_.Mark("resident", 5, {payload, 3 << 20}, 1);
  writer_.Mark("cuda:0 allocated", 5, {payload, 1 << 19}, 1);
  writer_.Mark("without a value", 6, {}, 1);
  writer_.Mark("of the program's own", 7, {payload, 9});
  const Trace trace = Read();
  ASSERT_EQ(trace.counters.size(), 2u);
  EXPECT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.Text(trace.counters.name[0]), kMemoryCounter);
  std::map<std::string, double> values;
  for (size_t i = 0; i < trace.counters.size(); ++i) {
    trace.args.ForEach(trace.counters.args[i], [&](const Arg& arg) {
      values[std::string(trace.Text(arg.key))] = arg.value.Number();
    });
  }
  EXPECT_EQ(values, (std::map<std::string, double>{{"resident", 3}, {"cuda:0 allocated", 0.5}}));
}

TEST_F(Reader, EndsWithoutStartsAndPopsWithoutPushesAreCounted) {
  writer_.BeginWriter(0, 100);
  writer_.Pop(10);
  writer_.End(20, 5);
  const Trace trace = Read();
  EXPECT_EQ(trace.ranges.size(), 0u);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 1);
  EXPECT_EQ(trace.quality.CountOf("unmatched_end"), 1);
}

TEST_F(Reader, OpenRangesEndAtTheLastTimeSeenOfTheProcess) {
  writer_.header().clean_exit.store(0);
  writer_.BeginWriter(0, 100);
  writer_.Push("open", 10);
  writer_.Push("open too", 20);
  writer_.BeginWriter(1, 101);
  writer_.Push("other", 30);
  writer_.Pop(900);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "open 10-900, open too 20-900, other 30-900");
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 2);
}

TEST_F(Reader, AWritersNextThreadDoesNotInheritOpenRanges) {
  writer_.BeginWriter(0, 100, "first");
  writer_.Push("left", 10);
  writer_.Push("done", 20);
  writer_.Pop(30);
  writer_.Thread(50, 101, "second");
  writer_.Push("own", 60);
  writer_.Pop(70);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "left 10-30, done 20-30, own 60-70");
  EXPECT_EQ(trace.quality.CountOf("open_range_at_thread_end"), 1);
  EXPECT_NE(trace.ranges.track[0], trace.ranges.track[2]);
}

TEST_F(Reader, AMissingChunkCutsItsRangesAndMixesNothing) {
  writer_.BeginWriter(0, 100);
  writer_.Push("before", 10);
  writer_.NewChunk(1);  // number 1 is missing: pop of "before", push of another
  writer_.Pop(500);
  writer_.Push("after", 600);
  writer_.Pop(700);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "before 10-10, after 600-700");
  EXPECT_EQ(trace.quality.CountOf("lost_chunk"), 1);
  EXPECT_EQ(trace.quality.CountOf("range_cut_by_damage"), 1);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 1);
}

TEST_F(Reader, NamesAndThreadsInALostChunkAreSaidToBeLost) {
  writer_.BeginWriter(0, 100);
  writer_.NewChunk();
  writer_.Push("defined here", 10);
  writer_.Pop(20);
  writer_.Finish();
  // The first chunk's header is zeroed: as if the process had died while claiming it.
  std::vector<char> bytes = ReadBytes(writer_.path());
  std::fill_n(bytes.begin() + recording::kChunkAlignment, sizeof(recording::ChunkHeader), 0);
  WriteBytes(writer_.path(), bytes);
  auto ranks = recording::ReadRecording(scratch_.path());
  ASSERT_TRUE(ranks.ok());
  const Trace& trace = ranks.value()[0].trace;
  EXPECT_EQ(Ranges(trace), "defined here 10-20");
  EXPECT_EQ(trace.quality.CountOf("lost_thread"), 1);
  EXPECT_EQ(trace.quality.CountOf("lost_chunk"), 1);
}

TEST_F(Reader, DamagedRecordsCostTheRestOfTheirChunk) {
  writer_.BeginWriter(0, 100);
  writer_.Push("good", 10);
  writer_.Pop(20);
  writer_.Raw({PackHead(RecordType::kPush, 4000, 0, 1), 30});
  writer_.Push("hidden", 40);
  writer_.NewChunk();
  writer_.Push("good", 50);
  writer_.Pop(60);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "good 10-20, good 50-60");
  EXPECT_EQ(trace.quality.CountOf("corrupt_chunk"), 1);
}

TEST_F(Reader, UnknownRecordsAreSkippedByTheirLength) {
  writer_.BeginWriter(0, 100);
  writer_.Raw({PackHead(static_cast<RecordType>(60), 3, 0, 0), 1, 2});
  writer_.Push("known", 10);
  writer_.Raw({static_cast<uint64_t>(200)});
  writer_.ShortPop(20);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "known 10-20");
  EXPECT_EQ(trace.quality.CountOf("unknown_record"), 2);
}

TEST_F(Reader, GapsAreThoseWithoutRecording) {
  writer_.BeginWriter(0, 100);
  writer_.Gap(0, 1000);
  writer_.Push("inside", 1000);
  writer_.Pop(2000);
  writer_.BeginWriter(1, 101);
  writer_.Gap(3000, 0);
  const Trace trace = Read();
  ASSERT_EQ(trace.gaps.size(), 2u);
  EXPECT_EQ(trace.gaps[0].interval, (Interval{{0}, {1000}}));
  EXPECT_EQ(trace.gaps[1].interval, (Interval{{3000}, {10'000'000'000}}));
  EXPECT_EQ(trace.Text(trace.gaps[0].reason), "window");
}

TEST_F(Reader, DropsAreSummedOverChunksAndThreads) {
  writer_.header().dropped_detail.store(3);
  writer_.header().dropped_all.store(5);
  writer_.header().first_detail_drop_ticks.store(1'000'000'000);
  writer_.header().first_drop_ticks.store(2'000'000'000);
  writer_.BeginWriter(0, 100);
  writer_.chunk().dropped_detail.store(10);
  writer_.chunk().dropped_all.store(20);
  const Trace trace = Read();
  EXPECT_EQ(trace.quality.CountOf("thinned_events"), 13);
  EXPECT_EQ(trace.quality.CountOf("dropped_events"), 25);
  ASSERT_EQ(trace.gaps.size(), 1u);
  EXPECT_EQ(trace.gaps[0].interval, (Interval{{2'000'000'000}, {10'000'000'000}}));
  EXPECT_NE(trace.quality.items()[1].detail.find("2.0 s"), std::string::npos);
}

TEST_F(Reader, BadUtf8IsRepairedAndCounted) {
  writer_.BeginWriter(0, 100);
  writer_.Push("a\xFF\xC0z", 10);
  writer_.Pop(20);
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "a\uFFFD\uFFFDz 10-20");
  EXPECT_EQ(trace.quality.CountOf("bad_utf8"), 1);
}

TEST_F(Reader, ANewerVersionIsRefusedWithAMessage) {
  writer_.header().version = recording::kFormatVersion + 1;
  writer_.Finish();
  const auto ranks = recording::ReadRecording(scratch_.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("format version " + std::to_string(recording::kFormatVersion + 1)),
            std::string::npos)
      << ranks.error();
}

TEST_F(Reader, OneUnreadableSegmentDoesNotHideTheOthers) {
  writer_.BeginWriter(0, 100);
  writer_.Push("a", 10);
  writer_.Pop(20);
  std::ofstream(scratch_.path() / "pid-1" / "7-1.tps") << "too short";
  const Trace trace = Read();
  EXPECT_EQ(Ranges(trace), "a 10-20");
  EXPECT_EQ(trace.quality.CountOf("unreadable_segment"), 1);
}

TEST_F(Reader, ReadsAFolderAndAFileOfTheRunToo) {
  writer_.BeginWriter(0, 100);
  writer_.Push("a", 10);
  writer_.Pop(20);
  writer_.Finish();
  for (const auto& path : {scratch_.path(), scratch_ / "pid-1", writer_.path()}) {
    EXPECT_TRUE(recording::LooksLikeRecording(path)) << path;
    const auto ranks = recording::ReadRecording(path);
    ASSERT_TRUE(ranks.ok()) << ranks.error();
    ASSERT_EQ(ranks.value().size(), 1u);
    EXPECT_EQ(Ranges(ranks.value()[0].trace), "a 10-20") << path;
  }
}

TEST(LooksLikeRecording, SaysNoToOtherThings) {
  const ScratchFolder scratch;
  EXPECT_FALSE(recording::LooksLikeRecording(scratch.path()));
  EXPECT_FALSE(recording::LooksLikeRecording(scratch / "absent"));
  std::ofstream(scratch / "trace.json") << "{\"traceEvents\": []}";
  EXPECT_FALSE(recording::LooksLikeRecording(scratch / "trace.json"));
}

TEST(ReadRecording, OfARunWithoutSegmentsSaysWhy) {
  const ScratchFolder scratch;
  const auto ranks = recording::ReadRecording(scratch.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("NVTX"), std::string::npos);
}

}  // namespace
}  // namespace trainprof::testing
