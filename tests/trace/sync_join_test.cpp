// Rows of synchronisation and the calls and streams they are about, against a twin that tries everything.
#include <gtest/gtest.h>

#include <random>

#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

struct Sync {
  int64_t correlation = kNoCorrelation;
  SyncKind kind = SyncKind::kStream;
  int64_t waited_stream = kNoCorrelation;
  int64_t waited_device = kNoCorrelation;
  int64_t waited_record = kNoCorrelation;
};

struct SyncTraceBuilder {
  TraceBuilder trace;
  int64_t now = 0;

  Event Next(TrackId track) {
    now += 10;
    return {.begin = TraceTime{now}, .end = TraceTime{now + 5}, .track = track};
  }
  TrackId Thread(int64_t pid) { return trace.FindOrAddThread(trace.FindOrAddProcess(pid), pid); }
  // Kineto's devices are processes of their own.
  TrackId Stream(int64_t device, int64_t number) {
    return trace.FindOrAddStream(trace.FindOrAddProcess(device), device, number);
  }
  void Call(int64_t pid, int64_t correlation) {
    trace.AddApi(Next(Thread(pid)), ApiKind::kOther, correlation);
  }
  void Kernel(TrackId stream, int64_t correlation) {
    trace.AddDeviceOp(Next(stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, correlation);
  }
  void Add(TrackId stream, const Sync& sync) {
    trace.AddRow(trace.trace().syncs, Next(stream), kEmptyString, sync.correlation, sync.kind,
                 int64_t{1}, int64_t{1}, sync.waited_stream, sync.waited_device, sync.waited_record,
                 kNoCorrelation);
  }
  Trace Build() {
    trace.trace().source = SourceKind::kKineto;
    return std::move(trace).Build();
  }
};

// The wider one is the runtime's.
TEST(SyncJoin, ACallIsTheOuterOne) {
  SyncTraceBuilder b;
  const TrackId thread = b.Thread(100);
  b.trace.AddApi({.begin = TraceTime{0}, .end = TraceTime{50}, .track = thread}, ApiKind::kSync, 7);
  b.trace.AddApi({.begin = TraceTime{10}, .end = TraceTime{40}, .track = thread}, ApiKind::kSync,
                 7);
  b.Add(b.Stream(0, 7), {.correlation = 7});
  const Trace t = b.Build();
  EXPECT_EQ(t.syncs.call, std::vector{Row{0}});
  EXPECT_EQ(t.syncs.awaited, std::vector{t.syncs.track[0]});
  EXPECT_EQ(t.syncs.record, std::vector{kNoRow});
}

// Two processes count alike; each drives a device.
TEST(SyncJoin, AnIdOfSeveralProcessesIsThatOfTheDevicesDriver) {
  SyncTraceBuilder b;
  for (const int64_t rank : {0, 1}) {
    const int64_t pid = 100 + rank;
    b.Call(pid, 1);
    b.Kernel(b.Stream(rank, 7), 1);
    b.Call(pid, 2);
    b.Add(b.Stream(rank, 7), {.correlation = 2});
  }
  b.Call(100, 9);
  b.Call(101, 9);
  b.Add(b.Stream(2, 7), {.correlation = 9});  // whose device nobody is known to drive
  const Trace t = b.Build();
  ASSERT_EQ(t.syncs.size(), 3u);
  for (uint32_t row = 0; row < 2; ++row) {
    const Row call = t.syncs.call[row];
    ASSERT_NE(call, kNoRow);
    const int64_t device = t.devices[Index(t.tracks[Index(t.syncs.track[row])].device)].id;
    EXPECT_EQ(t.processes[Index(t.ProcessOf(t.api.track[Index(call)]))].pid, 100 + device);
  }
  EXPECT_EQ(t.syncs.call[2], kNoRow);
}

TEST(SyncJoin, AnEventsStreamIsOfTheDeviceThatIsNamed) {
  SyncTraceBuilder b;
  const TrackId here = b.Stream(0, 7);
  const TrackId there = b.Stream(1, 7);
  const Sync wait = {.kind = SyncKind::kStreamWaits, .waited_stream = 7};
  b.Kernel(here, 1);
  b.Kernel(there, 2);
  Sync named = wait;
  named.waited_device = 1;
  b.Add(here, named);
  named.waited_device = 5;  // that is not there
  b.Add(here, named);
  b.Add(here, wait);  // one of two
  const Trace t = b.Build();
  EXPECT_EQ(t.syncs.awaited, (std::vector{there, kNoTrack, kNoTrack}));
}

TEST(SyncJoin, OfOneDeviceTheNumberOfTheStreamTells) {
  SyncTraceBuilder b;
  const TrackId waits = b.Stream(0, 7);
  const TrackId awaited = b.Stream(0, 20);
  b.Kernel(awaited, 1);
  b.Add(waits, {.kind = SyncKind::kStreamWaits, .waited_stream = 20});
  b.Add(waits, {.kind = SyncKind::kStreamWaits, .waited_stream = 21});
  b.Add(waits, {.kind = SyncKind::kContext});
  const Trace t = b.Build();
  EXPECT_EQ(t.syncs.awaited, (std::vector{awaited, kNoTrack, kNoTrack}));
}

// Kineto does not say of which device the stream is.
TEST(SyncJoin, AStreamThatOneDeviceAloneHasIsThatOne) {
  SyncTraceBuilder b;
  const TrackId waits = b.Stream(0, 7);
  const TrackId awaited = b.Stream(1, 13);
  b.Kernel(waits, 1);
  b.Kernel(awaited, 2);
  b.Add(waits, {.kind = SyncKind::kStreamWaits, .waited_stream = 13});
  EXPECT_EQ(b.Build().syncs.awaited, std::vector{awaited});
}

// What JoinSyncs promises, tried call by call.
Row TwinCall(const Trace& t, uint32_t sync, int64_t correlation) {
  if (correlation == kNoCorrelation) return kNoRow;
  std::vector<ProcessId> drivers;
  for (uint32_t op = 0; op < t.device_ops.size(); ++op) {
    const Row launch = t.device_ops.launch[op];
    if (launch == kNoRow) continue;
    if (t.ProcessOf(t.device_ops.track[op]) != t.ProcessOf(t.syncs.track[sync])) continue;
    drivers.push_back(t.ProcessOf(t.api.track[Index(launch)]));
  }
  const auto is_driver = [&](ProcessId process) {
    return !drivers.empty() && std::all_of(drivers.begin(), drivers.end(),
                                           [&](ProcessId driver) { return driver == process; });
  };
  std::vector<Row> of_driver;
  std::vector<Row> of_any;
  for (uint32_t call = 0; call < t.api.size(); ++call) {
    if (t.api.correlation[call] != correlation) continue;
    of_any.push_back(Row{call});
    if (is_driver(t.ProcessOf(t.api.track[call]))) of_driver.push_back(Row{call});
  }
  if (!of_driver.empty()) return of_driver[0];
  const bool is_one = std::all_of(of_any.begin(), of_any.end(), [&](Row call) {
    return t.ProcessOf(t.api.track[Index(call)]) == t.ProcessOf(t.api.track[Index(of_any[0])]);
  });
  return of_any.empty() || !is_one ? kNoRow : of_any[0];
}

TEST(SyncJoin, AgreesWithATwin) {
  std::mt19937_64 random(3);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t joined = 0;
  for (int round = 0; round < 500; ++round) {
    SyncTraceBuilder b;
    const int64_t processes = between(1, 3);
    const int64_t ids = between(1, 30);
    for (int64_t id = 1; id <= ids; ++id) {
      for (int64_t process = 0; process < processes; ++process) {
        if (between(0, 2) == 0) continue;
        b.Call(100 + process, id);
        if (between(0, 2) == 0) b.Kernel(b.Stream(between(0, 2), 7), id);
      }
      Sync sync = {.correlation = between(0, 5) == 0 ? kNoCorrelation : between(1, 30)};
      if (between(0, 1) == 0) {
        sync.kind = SyncKind::kStreamWaits;
        sync.waited_record = between(1, 30);
      }
      b.Add(b.Stream(between(0, 2), between(7, 8)), sync);
    }
    const Trace t = b.Build();
    for (uint32_t row = 0; row < t.syncs.size(); ++row) {
      ASSERT_EQ(t.syncs.call[row], TwinCall(t, row, t.syncs.correlation[row])) << round;
      ASSERT_EQ(t.syncs.record[row], TwinCall(t, row, t.syncs.waited_record[row])) << round;
      joined += t.syncs.call[row] != kNoRow ? 1 : 0;
    }
  }
  EXPECT_GT(joined, 500);
}

}  // namespace
}  // namespace trainprof
