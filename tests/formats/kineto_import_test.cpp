// What real files hold, one oddity a test: JSON in, tables and quality out as text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/json_window.h"

namespace trainprof {
namespace {

// The lines of a trace's text below its header, and the quality kinds.
struct ImportedFile {
  std::string rows;
  std::string quality;
  Trace trace;
};

ImportedFile Import(std::string_view json) {
  Result<Trace> trace = ImportText(json);
  EXPECT_TRUE(trace.ok()) << trace.error();
  if (!trace.ok()) return {};
  std::string rows;
  const std::string text = TraceText(trace.value());
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    if (text[at] == ' ' || text.compare(at, 6, "other ") == 0) rows += text.substr(at, end - at);
    at = end;
  }
  return {rows, QualityText(trace.value()), std::move(trace).value()};
}

std::string Events(std::string_view events) {
  return "{\"traceEvents\": [" + std::string(events) + "]}";
}

TEST(KinetoImport, OldAndNewCategoryWordsGiveTheSameTables) {
  const char* const kOld = R"json(
    {"ph":"X","cat":"Operator","name":"aten::add","pid":5,"tid":"5","ts":10,"dur":9,"args":{"External id":1}},
    {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":5,"tid":"5","ts":11,"dur":2,"args":{"correlation":3}},
    {"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":14,"dur":3,"args":{"device":0,"stream":7,"correlation":3}},
    {"ph":"X","cat":"Memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":"stream 7","ts":20,"dur":1,"args":{"bytes":64}})json";
  const ImportedFile old = Import(Events(kOld));
  EXPECT_EQ(
      old.rows,
      "  kernel [4000,7000) \"k\" cat Kernel #3 launched 1000 device=0 stream=7 correlation=3\n"
      "  copy [10000,11000) \"Memcpy HtoD (Pageable -> Device)\" cat Memcpy 64 B direction 1 "
      "Pageable to Device bytes=64\n"
      "  op [0,9000) \"aten::add\" cat Operator External id=1\n"
      "  call(1) [1000,3000) \"cudaLaunchKernel\" cat Runtime #3 correlation=3\n");
  std::string renamed = kOld;
  for (const auto& [from, to] : {std::pair{"Operator", "cpu_op"},
                                 {"\"Runtime", "\"cuda_runtime"},
                                 {"\"Kernel", "\"kernel"},
                                 {"\"Memcpy\"", "\"gpu_memcpy\""},
                                 {"\"stream 7\"", "7"},
                                 {"\"stream 7\"", "7"},
                                 {"\"5\"", "5"},
                                 {"\"5\"", "5"}}) {
    const size_t at = renamed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    renamed.replace(at, std::string_view(from).size(), to);
  }
  const ImportedFile now = Import(Events(renamed));
  EXPECT_EQ(now.trace.device_ops.begin, old.trace.device_ops.begin);
  EXPECT_EQ(now.trace.device_ops.kind, old.trace.device_ops.kind);
  EXPECT_EQ(now.trace.api.correlation, old.trace.api.correlation);
  EXPECT_EQ(now.trace.ranges.kind, old.trace.ranges.kind);
  EXPECT_EQ(now.trace.tracks.size(), 2u);
  EXPECT_EQ(now.quality, old.quality);
}

TEST(KinetoImport, StepsAndLoadersAmongTheOperatorsAreAnnotations) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","cat":"Operator","name":"ProfilerStep#5","pid":5,"tid":"5","ts":0,"dur":9},
    {"ph":"X","cat":"Operator","name":"enumerate(DataLoader)#_Iter.__next__","pid":5,"tid":"5","ts":1,"dur":2},
    {"ph":"X","cat":"Operator","name":"aten::mm","pid":5,"tid":"5","ts":3,"dur":2})json"));
  EXPECT_EQ(got.rows,
            "  annotation [0,9000) \"ProfilerStep#5\" cat Operator\n"
            "  annotation [1000,3000) \"enumerate(DataLoader)#_Iter.__next__\" cat Operator in"
            " ProfilerStep#5\n"
            "  op [3000,5000) \"aten::mm\" cat Operator in ProfilerStep#5\n");
}

TEST(KinetoImport, TimesAreExactWhateverTheirForm) {
  const ImportedFile got =
      Import(R"json({"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1623142623460016.001,"dur":0.999},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":1.623142623460017e15,"dur":25e-1},
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":"1623142623460020.5","dur":1},
    {"ph":"X","name":"d","pid":1,"tid":1,"ts":1623142623460030.0006,"dur":1.5}]})json");
  EXPECT_EQ(got.rows,
            "  range [0,999) \"a\"\n"
            "  range [999,3499) \"b\"\n"
            "  range [4499,5499) \"c\"\n"
            "  range [14000,15500) \"d\"\n");
  EXPECT_EQ(got.trace.base_ns, 1700000000000000000 + 1623142623460016001);
  EXPECT_EQ(got.quality, "number_as_text 1 (info)\ntime_below_ns 1 (info)\n");
}

TEST(KinetoImport, ImpossibleTimesAreCountedAndTheEventIsKept) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
    {"ph":"X","name":"no ts","pid":1,"tid":1,"dur":1},
    {"ph":"X","name":"huge","pid":1,"tid":1,"ts":1e300,"dur":1},
    {"ph":"X","name":"word","pid":1,"tid":1,"ts":"soon","dur":1},
    {"ph":"X","name":"no dur","pid":1,"tid":1,"ts":5},
    {"ph":"X","name":"backwards","pid":1,"tid":1,"ts":7,"dur":-3})json"));
  EXPECT_EQ(
      got.rows,
      "  range [0,1000) \"a\"\n"
      "  range [4000,4000) \"no dur\"\n"
      "  range [6000,6000) \"backwards\"\n"
      "other {\"ph\":\"X\",\"name\":\"huge\",\"pid\":1,\"tid\":1,\"ts\":1e300,\"dur\":1}\n"
      "other {\"ph\":\"X\",\"name\":\"no ts\",\"pid\":1,\"tid\":1,\"dur\":1}\n"
      "other {\"ph\":\"X\",\"name\":\"word\",\"pid\":1,\"tid\":1,\"ts\":\"soon\",\"dur\":1}\n");
  EXPECT_EQ(got.quality,
            "negative_duration 1 (warning)\nmissing_time 3 (warning)\nbad_time 2 (warning)\n"
            "missing_duration 1 (warning)\n");
}

TEST(KinetoImport, EventsAtTimeZeroFarFromAllOthersAreSetAside) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":0,"dur":3,"args":{"stream":7}},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1623142623460016,"dur":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":1623142623460018,"dur":1})json"));
  EXPECT_EQ(got.trace.extent.end.ns, 3000);
  EXPECT_EQ(got.trace.device_ops.size(), 0u);
  EXPECT_NE(got.rows.find("\"cat\":\"kernel\""), std::string::npos) << got.rows;
  EXPECT_EQ(got.quality, "zero_time 1 (warning)\n");
  // Where time 0 is where the trace begins, it is a time like any other.
  EXPECT_EQ(
      Import(Events(R"json({"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1})json")).quality,
      "");
}

TEST(KinetoImport, TextsAsPidAndTidGetNumbersAndNames) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":99},
    {"ph":"X","name":"a","pid":"host a","tid":"worker","ts":5,"dur":1},
    {"ph":"X","name":"b","pid":-1,"tid":-1029147072,"ts":7,"dur":1})json"));
  ASSERT_EQ(got.trace.processes.size(), 3u);  // by pid
  EXPECT_EQ(got.trace.Text(got.trace.processes[0].name), "host a");
  EXPECT_EQ(got.trace.Text(got.trace.processes[1].name), "Spans");
  EXPECT_LT(got.trace.processes[1].pid, -1);
  EXPECT_EQ(got.trace.Text(got.trace.tracks[0].name), "worker");
  EXPECT_EQ(got.trace.processes[2].pid, -1);
  EXPECT_EQ(got.trace.tracks[2].tid, -1029147072);
  // The profiler's own row is kept, and is no activity.
  EXPECT_EQ(got.trace.tracks[1].kind, TrackKind::kOther);
  EXPECT_EQ(got.trace.extent, (Interval{TraceTime{5000}, TraceTime{8000}}));
}

TEST(KinetoImport, ArgumentsAreKeptInOrderWithTheirTypes) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"cname":"good","args":{"i":-5,"big":92233720368547758080,
     "d":88.88888888888889,"one":1.0,"t":true,"f":false,"n":null,"s":"x","l":[[1, 2],[]],"o":{"k":"v"},"^p":1}})json"));
  EXPECT_EQ(got.rows,
            "  range [0,1000) \"a\" ^cname='good' i=-5 big=json 92233720368547758080"
            " d=0x1.638e38e38e38ep+6 one=0x1p+0 t=true f=false n=null s='x' l=json [[1, 2],[]]"
            " o=json {\"k\":\"v\"} ^^p=1\n");
  EXPECT_EQ(got.quality, "");
}

// Values are compared with the last one of their key before they are parsed.
TEST(KinetoImport, AValueThatBeginsOrDecodesLikeTheLastOneIsItself) {
  const char* const kEvents = R"json(
    {"ph":"X","name":"a\\b","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k":"a\\b","l":[1,2]}},
    {"ph":"X","name":"a\b","pid":1,"tid":1,"ts":2,"dur":1,"args":{"k":"a\b","l":[1,2]}},
    {"ph":"X","name":"ab","pid":1,"tid":1,"ts":3,"dur":1,"args":{"k":"ab","l":[1,2,3]}},
    {"ph":"X","name":"abc","pid":1,"tid":1,"ts":4,"dur":1,"args":{"k":"abc","l":[1]}},
    {"ph":"X","name":"ab","pid":1,"tid":1,"ts":5,"dur":1,"args":{"k":"ab","l":[1 ]}},
    {"ph":"X","name":"","pid":1,"tid":1,"ts":6,"dur":1,"args":{"k":"","l":"[1]"}})json";
  EXPECT_EQ(Import(Events(kEvents)).rows,
            "  range [0,1000) \"a\\b\" k='a\\b' l=json [1,2]\n"
            "  range [1000,2000) \"a\b\" k='a\b' l=json [1,2]\n"
            "  range [2000,3000) \"ab\" k='ab' l=json [1,2,3]\n"
            "  range [3000,4000) \"abc\" k='abc' l=json [1]\n"
            "  range [4000,5000) \"ab\" k='ab' l=json [1 ]\n"
            "  range [5000,6000) \"\" k='' l='[1]'\n");
}

// A text is guessed from those before it. Values that begin alike, that are spelled in other ways,
// and texts that look like lists, in an order that mostly repeats.
TEST(KinetoImport, WhatIsGuessedIsWhatTheFileSays) {
  struct Value {
    const char* spelled;
    const char* shown;
  };
  constexpr Value kTexts[] = {
      {R"("")", ""},         {R"("ab")", "ab"}, {R"("a\u0062")", "ab"},  {R"("abc")", "abc"},
      {R"("a\\b")", "a\\b"}, {R"("[1")", "[1"}, {R"("[1,2]")", "[1,2]"}, {R"("{")", "{"}};
  constexpr const char* kRaws[] = {"[1,2]", "[1]", "[1 ]", "[1,2,3]", "{\"m\":2}", "[]", "[[1,2]]"};
  std::mt19937 random(5);
  const auto below = [&](size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  };
  std::vector<std::pair<std::string, std::string>> events;  // spelled, shown
  const auto argument = [&](std::string& spelled, std::string& shown, const char* key) {
    const size_t which = below(std::size(kTexts) + std::size(kRaws));
    const bool is_text = which < std::size(kTexts);
    const char* const raw = is_text ? "" : kRaws[which - std::size(kTexts)];
    spelled += fmt::format("\"{}\":{}", key, is_text ? kTexts[which].spelled : raw);
    shown += is_text ? fmt::format(" {}='{}'", key, kTexts[which].shown)
                     : fmt::format(" {}=json {}", key, raw);
  };
  std::string text;
  std::string rows;
  for (size_t i = 0; i < 5000; ++i) {
    const Value& name = kTexts[below(std::size(kTexts))];
    std::pair<std::string, std::string> event{fmt::format("\"name\":{},\"args\":{{", name.spelled),
                                              fmt::format("\"{}\"", name.shown)};
    argument(event.first, event.second, "k");
    event.first += ",";
    argument(event.first, event.second, "l");
    constexpr size_t kPeriod = 7;
    events.push_back(i >= kPeriod && below(5) != 0 ? events[i - kPeriod] : event);
    text += fmt::format("{}{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{},\"dur\":1,{}}}}}",
                        i == 0 ? "" : ",", i, events.back().first);
    rows += fmt::format("  range [{},{}) {}\n", i * 1000, (i + 1) * 1000, events.back().second);
  }
  EXPECT_EQ(Import(Events(text)).rows, rows);
}

// An event is parsed again when the window has cut it off.
TEST(KinetoImport, WhereTheWindowEndsChangesNothing) {
  const std::string event =
      R"json({"ph":"f","id":12,"bp":"e","s":"t","cat":"ac2g","name":"ac2g","pid":1,"tid":"stream 7",)json"
      R"json("ts":1.5,"tts":2.5,"args":{"k":"v","l":[1,{"m":2}],"n":-0.5,"o":true}})json";
  const ImportedFile whole = Import(Events(event));
  for (size_t cut = 0; cut <= event.size(); ++cut) {
    const std::string head = "{\"traceEvents\": [";
    const std::string spaces(JsonWindow::kFirstBytes - head.size() - cut, ' ');
    const ImportedFile split = Import(head + spaces + event + "]}");
    EXPECT_EQ(split.rows, whole.rows) << cut;
    EXPECT_EQ(split.quality, whole.quality) << cut;
    ASSERT_EQ(split.trace.strings.size(), whole.trace.strings.size()) << event.substr(0, cut);
  }
}

TEST(KinetoImport, BareWordsBadEscapesAndBadUtf8AreRepairedAndCounted) {
  const ImportedFile got = Import(
      Events("{\"ph\":\"X\",\"name\":\"C:\\x\\q\\u00e9\\ud83d\\ude00\\ud83d\",\"pid\":1,\"tid\":1,"
             "\"ts\":1,\"dur\":1},"
             "{\"ph\":\"X\",\"name\":\"n\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1,"
             "\"args\":{\"a\":N/A,\"b\":NaN,\"c\":-Infinity,\"d\":[NaN, \"\\q\", 007]}},"
             "{\"ph\":\"X\",\"name\":\"bad \xFF\xC3 utf8\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1},"
             "{\"ph\":\"X\",\"name\":\"tab\there\",\"pid\":1,\"tid\":1,\"ts\":7,\"dur\":1}"));
  EXPECT_EQ(
      got.rows,
      "  range [0,1000) \"C:\\x\\q\u00e9\U0001F600\uFFFD\"\n"
      "  range [2000,3000) \"n\" a='N/A' b='NaN' c='-Infinity' d=json [\"NaN\", \"\\\\q\", 7]\n"
      "  range [4000,5000) \"bad \uFFFD\uFFFD utf8\"\n"
      "  range [6000,7000) \"tab\there\"\n");
  EXPECT_EQ(got.quality,
            "bad_escape 2 (warning)\ninvalid_utf8 1 (warning)\ncontrol_character 1 (info)\n"
            "bare_literal 1 (warning)\nodd_number 1 (info)\n");
}

TEST(KinetoImport, RepeatedKeysAreCountedAndTheLastCounts) {
  const ImportedFile got = Import(Events(
      R"json({"ph":"X","name":"first","name":"last","pid":1,"tid":1,"ts":1,"dur":1,"args":{"a":1,"b":2,"a":3}})json"));
  EXPECT_EQ(got.rows, "  range [0,1000) \"last\" a=1 b=2 a=3\n");
  EXPECT_EQ(got.quality, "duplicate_key 2 (warning)\n");
}

TEST(KinetoImport, FieldsOfTheWrongTypeAreCounted) {
  const ImportedFile got = Import(Events(
      R"json({"ph":"X","name":12,"cat":null,"pid":1.5,"tid":true,"ts":1,"dur":1,"args":"text"})json"));
  EXPECT_EQ(got.rows, "  range [0,1000) \"12\" cat null ^args='text'\n");
  EXPECT_EQ(got.quality, "wrong_type 5 (warning)\n");
}

TEST(KinetoImport, BeginAndEndEventsBecomeRanges) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"B","name":"outer","pid":1,"tid":1,"ts":1,"args":{"a":1}},
    {"ph":"B","name":"inner","pid":1,"tid":1,"ts":2},
    {"ph":"E","pid":1,"tid":1,"ts":3},
    {"ph":"E","pid":1,"tid":1,"ts":4,"args":{"b":2}},
    {"ph":"E","pid":1,"tid":1,"ts":5},
    {"ph":"B","name":"left open","pid":1,"tid":2,"ts":2})json"));
  EXPECT_EQ(got.rows,
            "  range [0,3000) \"outer\" a=1 b=2\n"
            "  range [1000,2000) \"inner\" in outer\n"
            "  range [1000,3000) \"left open\"\n"
            "other 4000 {\"ts\":null,\"ph\":\"E\",\"name\":\"\",\"pid\":1,\"tid\":1}\n");
  EXPECT_EQ(got.quality, "unmatched_begin 1 (warning)\nunmatched_end 1 (warning)\n");
}

TEST(KinetoImport, PointsArrowsCountersAndAsyncEventsAreKept) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{"Bytes":4}},
    {"ph":"C","name":"loss","pid":1,"ts":2,"args":{"v":0.5}},
    {"ph":"s","cat":"ac2g","name":"ac2g","id":7,"pid":1,"tid":1,"ts":3},
    {"ph":"f","cat":"ac2g","name":"ac2g","id":7,"pid":0,"tid":20,"ts":4,"bp":"e"},
    {"ph":"b","cat":"c","name":"async","id":"0x1f","pid":1,"tid":1,"ts":5},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":20,"ts":4,"dur":1},
    {"ph":"?","name":"new","pid":1,"tid":1,"ts":6})json"));
  EXPECT_EQ(
      got.rows,
      "  kernel [3000,4000) \"k\" cat kernel\n"
      "  flow f [3000,3000) \"ac2g\" cat ac2g id 7 bind\n"
      "  counter [1000,1000) \"loss\" v=0x1p-1\n"
      "  instant [0,0) \"[memory]\" scope t size 4 of device -1 Unknown  Bytes=4\n"
      "  flow s [2000,2000) \"ac2g\" cat ac2g id 7\n"
      "other 4000 {\"ts\":null,\"ph\":\"b\",\"cat\":\"c\",\"name\":\"async\",\"pid\":1,\"tid\":1,"
      "\"id\":\"0x1f\"}\n"
      "other {\"ph\":\"?\",\"name\":\"new\",\"pid\":1,\"tid\":1,\"ts\":6}\n");
  EXPECT_EQ(got.quality, "unknown_phase 1 (info)\nkernel_without_launch 1 (info)\n");
}

TEST(KinetoImport, RocmCopiesGetTheirBytesFromTheCall) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"X","cat":"cuda_runtime","name":"hipMemcpyWithStream","pid":9,"tid":9,"ts":1,"dur":9,"args":{"stream":"0x0","correlation":117,"size":"2560"}},
    {"ph":"X","cat":"gpu_memcpy","name":"CopyHostToDevice","pid":2,"tid":0,"ts":3,"dur":2,"args":{"device":2,"stream":0,"correlation":117,"kind":"HtoD"}})json"));
  ASSERT_EQ(got.trace.device_ops.size(), 1u);
  EXPECT_EQ(got.trace.device_ops.bytes[0], 2560);
  EXPECT_EQ(got.trace.device_ops.direction, std::vector{CopyDirection::kHostToDevice});
  EXPECT_EQ(got.trace.device_ops.launch, std::vector{Row{0}});
  EXPECT_EQ(got.trace.devices[0].id, 2);
}

TEST(KinetoImport, TopLevelMembersFillTheHeaderAndAreKept) {
  const ImportedFile got = Import(R"json({"schemaVersion": 1, "with_stack": 1, "trace_id": "D7",
    "deviceProperties": [{"id": 3, "name": "NVIDIA A100", "totalGlobalMem": 42505273344, "computeMajor": 8, "numSms": 108}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "traceEvents": [], "odd": NaN})json");
  EXPECT_TRUE(got.trace.rank_known);
  EXPECT_EQ(got.trace.rank, 3);
  EXPECT_EQ(got.trace.world_size, 8);
  ASSERT_EQ(got.trace.devices.size(), 1u);
  EXPECT_EQ(got.trace.devices[0].id, 3);
  EXPECT_EQ(got.trace.devices[0].num_sms, 108);
  EXPECT_EQ(got.trace.source_members.size(), 6u);
  EXPECT_EQ(got.quality, "bare_literal 1 (warning)\n");
}

TEST(KinetoImport, MetadataNamesProcessesAndTracks) {
  const ImportedFile got = Import(Events(R"json(
    {"ph":"M","name":"process_name","pid":5,"tid":0,"args":{"name":"python"}},
    {"ph":"M","name":"process_labels","pid":5,"tid":0,"args":{"labels":"CPU"}},
    {"ph":"M","name":"process_sort_index","pid":5,"tid":0,"args":{"sort_index":4}},
    {"ph":"M","name":"thread_name","pid":5,"tid":"8","args":{"name":"main"}},
    {"ph":"M","name":"stackframes","pid":5,"tid":"8","args":{}},
    {"ph":"X","name":"a","pid":5,"tid":8,"ts":1,"dur":1})json"));
  const Process& process = got.trace.processes[0];
  EXPECT_EQ(got.trace.Text(process.name), "python");
  EXPECT_EQ(got.trace.Text(process.labels), "CPU");
  EXPECT_EQ(process.sort_index, 4);
  ASSERT_EQ(got.trace.tracks.size(), 1u);
  EXPECT_EQ(got.trace.Text(got.trace.tracks[0].name), "main");
  EXPECT_EQ(got.trace.others.size(), 1u);
}

// Chrome's format allows that, but so looks a list that was cut between two events.
TEST(KinetoImport, ABareListWithoutItsEndIsReadAndMayLackSomething) {
  EXPECT_EQ(Import(R"json([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}])json").quality,
            "");
  EXPECT_EQ(
      Import("[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n").quality,
      "truncated_input 1 (data_loss)\n");
}

TEST(KinetoImport, ATruncatedTailLosesOnlyItself) {
  const ImportedFile got = Import(
      R"json({"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b)json");
  EXPECT_EQ(got.rows, "  range [0,1000) \"a\"\n");
  EXPECT_EQ(got.quality, "truncated_input 1 (data_loss)\n");
}

TEST(KinetoImport, GoesOnAfterAnEventThatIsNoJson) {
  const ImportedFile got =
      Import(R"json({"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
    {"ph":"X","name":"broken" "pid":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1} null, 5
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":4,"dur":1},
    {"ph":"X","name":"last" oops }
    ], "traceName": "x.json"} tail)json");
  EXPECT_EQ(got.rows,
            "  range [0,1000) \"a\"\n  range [1000,2000) \"b\"\n  range [3000,4000) \"c\"\n");
  EXPECT_EQ(got.trace.source_members.size(), 1u);
  EXPECT_EQ(got.quality,
            "not_an_event 2 (warning)\nunparsable_event 2 (data_loss)\nmissing_comma 1 (info)\n"
            "trailing_data 1 (warning)\n");
}

TEST(KinetoImport, CancelEndsWithAnError) {
  const std::atomic<bool> cancel = true;
  const TemporaryFile file("t.json", Events(R"json({"ph":"X","ts":1})json"));
  const Result<Trace> trace = ImportTrace(file.path(), {.progress = {}, .cancel = &cancel});
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().find("cancelled"), std::string::npos);
}

TEST(KinetoImport, ErrorsSayWhatWasExpectedAndWhatToDo) {
  const auto error = [](std::string_view text) {
    const Result<Trace> trace = ImportText(text);
    return trace.ok() ? std::string("no error") : trace.error();
  };
  EXPECT_NE(error("{\"a\": 1}").find("it holds \"a\""), std::string::npos) << error("{\"a\": 1}");
  EXPECT_NE(error("hello").find("It reads: kineto"), std::string::npos);
  EXPECT_NE(error("").find("empty"), std::string::npos) << error("");
  EXPECT_NE(error("[1, 2]").find("without a single event"), std::string::npos);
  EXPECT_NE(error("[{\"lr\": 0.1}, {}]").find("without a single event"), std::string::npos);
  EXPECT_NE(error("{\"traceEvents\": [{\"name\": \"x\"}]}").find("without a single event"),
            std::string::npos);
  EXPECT_NE(ImportTrace("/nonexistent/t.json").error().find("cannot open"), std::string::npos);
}

}  // namespace
}  // namespace trainprof
