#include "analysis/host/same_callers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "analysis/host/call_sites.h"
#include "tests/support/trace_script.h"
#include "trace/base/names.h"

namespace trainprof {
namespace {

// The lines of all calls of the trace, in their order; "" where none is known.
std::vector<std::string> LinesOf(const std::string& script) {
  const Trace trace = TraceFromScript(script);
  const SiteFinder finder(trace);
  std::vector<std::string> lines;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    const Site site = finder.FindCall(Row{call});
    lines.push_back(site.file.empty() ? "" : fmt::format("{}:{}", site.file, site.line));
  }
  return lines;
}

using Lines = std::vector<std::string>;

// Of a loop whose host ran ahead all stacks were taken in the steps before those that count.
TEST(SameCallers, ACopyWithoutAStackComesFromWhereTheOthersDo) {
  EXPECT_EQ(LinesOf(R"(
    thread 1
    call 10 20 cudaMemcpyAsync | corr=1 stack=/home/me/a.cpp(7): f
    call 30 40 cudaMemcpyAsync | corr=2
    call 50 60 cudaStreamWaitEvent | corr=3 stack=/home/me/a.cpp(9): f
    call 70 80 cudaStreamWaitEvent | corr=4
    call 90 95 cudaLaunchHostFunc | corr=5 stack=/home/me/a.cpp(11): f
    call 96 99 cudaLaunchHostFunc | corr=6)"),
            (Lines{"/home/me/a.cpp:7", "/home/me/a.cpp:7", "/home/me/a.cpp:9", "/home/me/a.cpp:9",
                   "/home/me/a.cpp:11", "/home/me/a.cpp:11"}));
}

// Stacks of launches and synchronisations are taken where these are long, whatever their site.
TEST(SameCallers, WhatHasAStackOnlyWhenItIsLongTellsNothingOfOthers) {
  for (const char* call : {"cudaLaunchKernel", "cudaStreamSynchronize", "cudaMalloc"}) {
    EXPECT_EQ(LinesOf(fmt::format("thread 1\ncall 10 20 {0} | corr=1 stack=/home/me/a.cpp(7): f\n"
                                  "call 30 40 {0} | corr=2",
                                  call)),
              (Lines{"/home/me/a.cpp:7", ""}))
        << call;
  }
}

TEST(SameCallers, OfAnotherThreadRangeOrDirectionTheyTellNothing) {
  EXPECT_EQ(LinesOf(R"(
    thread 1
    annotation 0 25 forward
    call 10 20 cudaMemcpyAsync | corr=1 stack=/home/me/a.cpp(7): f
    annotation 28 45 backward
    call 30 40 cudaMemcpyAsync | corr=2
    annotation 48 65 forward
    call 50 60 cudaMemcpyAsync | corr=3
    thread 2
    annotation 65 95 forward
    call 70 80 cudaMemcpyAsync | corr=4
    stream 0 7
    copy 20 36 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=8
    copy 60 66 Memcpy DtoD (Device -> Device) | corr=3 bytes=8)"),
            (Lines{"/home/me/a.cpp:7", "", "", ""}));
}

TEST(SameCallers, CopiesFromSeveralPlacesAreToldBySizeAndStream) {
  EXPECT_EQ(LinesOf(R"(
    thread 1
    call 10 20 cudaMemcpyAsync | corr=1 stack=/home/me/a.cpp(7): f
    call 30 40 cudaMemcpyAsync | corr=2 stack=/home/me/b.cpp(8): g
    call 50 60 cudaMemcpyAsync | corr=3
    call 70 80 cudaMemcpyAsync | corr=4
    call 90 95 cudaMemcpyAsync | corr=5
    call 100 105 cudaMemcpyAsync | corr=6
    stream 0 7
    copy 20 30 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=8
    copy 40 50 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=64
    copy 60 70 Memcpy HtoD (Pageable -> Device) | corr=3 bytes=64
    copy 80 90 Memcpy HtoD (Pageable -> Device) | corr=4 bytes=8
    copy 95 99 Memcpy HtoD (Pageable -> Device) | corr=5 bytes=16
    stream 0 8
    copy 105 109 Memcpy HtoD (Pageable -> Device) | corr=6 bytes=8)"),
            (Lines{"/home/me/a.cpp:7", "/home/me/b.cpp:8", "/home/me/b.cpp:8", "/home/me/a.cpp:7",
                   "", ""}));
}

TEST(SameCallers, AStepIsNoRangeOfItsOwn) {
  EXPECT_EQ(LinesOf(R"(
    thread 1
    step 0 25 ProfilerStep#1
    call 10 20 cudaMemcpyAsync | corr=1 stack=/home/me/a.cpp(7): f
    step 28 45 ProfilerStep#2
    call 30 40 cudaMemcpyAsync | corr=2)"),
            (Lines{"/home/me/a.cpp:7", "/home/me/a.cpp:7"}));
}

// What the law says, one pair of calls at a time: the line of a call that has no stack.
std::string LineByPairs(const Trace& trace, Row call) {
  const auto op_of = [&](Row of) -> std::optional<Row> {
    for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
      if (trace.device_ops.launch[op] == of && trace.device_ops.kind[op] == DeviceOpKind::kCopy) {
        return Row{op};
      }
    }
    return std::nullopt;
  };
  const auto range_of = [&](Row of) -> std::string {
    const Row row =
        InnermostRange(trace.ranges, trace.api.track[Index(of)], trace.api.begin[Index(of)]);
    if (row == kNoRow) return "";
    const StringId name = trace.ranges.name[Index(row)];
    return trace.Facts(name).is_step ? "" : std::string(trace.Text(name));
  };
  std::set<std::string> all;
  std::set<std::string> of_size;
  for (uint32_t i = 0; i < trace.api.size(); ++i) {
    const Row other{i};
    Site site;
    if (!SiteInStack(trace, trace.api.stack[i], site)) continue;
    if (trace.api.track[i] != trace.api.track[Index(call)]) continue;
    if (trace.api.name[i] != trace.api.name[Index(call)]) continue;
    if (trace.Text(trace.api.name[i]) == "cudaLaunchKernel") continue;
    if (range_of(other) != range_of(call)) continue;
    const std::optional<Row> op = op_of(call);
    const std::optional<Row> others = op_of(other);
    const DeviceOpTable& ops = trace.device_ops;
    const auto direction = [&](std::optional<Row> row) {
      return row ? ops.direction[Index(*row)] : CopyDirection::kUnknown;
    };
    if (direction(op) != direction(others)) continue;
    const std::string line = fmt::format("{}:{}", site.file, site.line);
    all.insert(line);
    if (!op || !others || ops.bytes[Index(*op)] != ops.bytes[Index(*others)]) continue;
    if (ops.track[Index(*op)] == ops.track[Index(*others)]) of_size.insert(line);
  }
  if (all.size() == 1) return *all.begin();
  return of_size.size() == 1 ? *of_size.begin() : "";
}

TEST(SameCallers, AreWhatAllPairsSay) {
  const char* const kStacks[] = {"", "", " stack=/home/me/a.cpp(1): f",
                                 " stack=/home/me/b.cpp(2): g"};
  const char* const kCalls[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamWaitEvent"};
  const char* const kCopies[] = {"Memcpy HtoD (Pageable -> Device)",
                                 "Memcpy DtoD (Device -> Device)"};
  const char* const kRanges[] = {"annotation {} {} forward", "annotation {} {} data",
                                 "step {} {} ProfilerStep#1"};
  int known = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](uint32_t count) { return random() % count; };
    std::string host;
    std::string device;
    int id = 0;
    for (int thread = 1; thread <= 2; ++thread) {
      host += fmt::format("thread {}\n", thread);
      for (int at = 0; at < 600; at += 50) {
        if (draw(3) > 0) {
          host += fmt::format(fmt::runtime(kRanges[draw(3)]), at, at + 40) + "\n";
        }
        // One after the other: compilers order arguments as they like.
        const char* const call = kCalls[draw(3)];
        const char* const stack = kStacks[draw(4)];
        host += fmt::format("call {} {} {} | corr={}{}\n", at + 5, at + 9, call, ++id, stack);
        if (draw(4) == 0) continue;
        const char* const copy = kCopies[draw(2)];
        const uint32_t stream = draw(2);
        const uint32_t bytes = 8 << draw(2);
        device += fmt::format("stream 0 {}\ncopy {} {} {} | corr={} bytes={}\n", stream, 1000 + id,
                              1000 + id, copy, id, bytes);
      }
    }
    const Trace trace = TraceFromScript(host + device);
    const SiteFinder finder(trace);
    for (uint32_t call = 0; call < trace.api.size(); ++call) {
      if (trace.api.stack[call] != kNoStack) continue;
      const Site site = finder.FindCall(Row{call});
      const std::string line = site.file.empty() ? "" : fmt::format("{}:{}", site.file, site.line);
      EXPECT_EQ(line, LineByPairs(trace, Row{call})) << call;
      known += line.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(known, 300);
}

}  // namespace
}  // namespace trainprof
