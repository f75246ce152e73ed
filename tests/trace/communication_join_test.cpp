// Kernels that communicate without saying so: by what launched them and by their streams.
#include "trace/build/communication_join.h"

#include <gtest/gtest.h>

#include <random>

#include "trace/build/trace_builder.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";

// Kernels of 100 ns for each unit of `length`, one behind the other on their stream.
class KernelsBuilder {
 public:
  void Range(const char* name, int64_t begin, int64_t end) {
    builder_.AddRange({TraceTime{begin}, TraceTime{end}, builder_.Intern(name), Thread()},
                      RangeKind::kCpuOp);
  }
  void Launch(int64_t at, int64_t correlation) {
    builder_.AddApi(
        {TraceTime{at}, TraceTime{at + 2}, builder_.Intern("cudaLaunchKernel"), Thread()},
        ApiKind::kLaunch, correlation);
  }
  void Kernel(const char* name, int64_t stream, int64_t length, int64_t correlation = -1,
              int64_t device = 0) {
    const TrackId track = builder_.FindOrAddStream(builder_.FindOrAddProcess(1), device, stream);
    const int64_t begin = now_;
    now_ += 100 * length;
    builder_.AddDeviceOp({TraceTime{begin}, TraceTime{now_}, builder_.Intern(name), track},
                         DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, correlation);
  }
  Trace Build() { return std::move(builder_).Build(); }

 private:
  TrackId Thread() { return builder_.FindOrAddThread(builder_.FindOrAddProcess(1), 1); }

  TraceBuilder builder_;
  int64_t now_ = 1000;
};

std::vector<std::string> CommunicatingIn(const Trace& trace) {
  std::vector<std::string> names;
  for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
    if (Communicates(trace, Row{op})) names.emplace_back(trace.Text(trace.device_ops.name[op]));
  }
  return names;
}

TEST(CommunicationJoin, KernelOnAStreamThatCommunicates) {
  KernelsBuilder builder;
  builder.Kernel("gemm", 7, 50);
  builder.Kernel(kAllReduce, 20, 10);
  builder.Kernel("my_exchange", 20, 4);
  EXPECT_EQ(CommunicatingIn(builder.Build()),
            (std::vector<std::string>{kAllReduce, "my_exchange"}));
}

TEST(CommunicationJoin, StreamThatComputesAsWellIsNone) {
  KernelsBuilder builder;  // tensor-parallel decoding: all on one stream
  builder.Kernel(kAllReduce, 7, 90);
  builder.Kernel("gemm", 7, 10);
  builder.Kernel("sampler", 8, 2);
  EXPECT_EQ(CommunicatingIn(builder.Build()), (std::vector<std::string>{kAllReduce}));
}

TEST(CommunicationJoin, StreamThatCommunicatesForLessThanHalfOfItsTimeIsNone) {
  KernelsBuilder builder;
  builder.Kernel("gemm", 7, 50);
  builder.Kernel(kAllReduce, 20, 10);
  builder.Kernel("pack", 20, 11);
  EXPECT_EQ(CommunicatingIn(builder.Build()), (std::vector<std::string>{kAllReduce}));
}

TEST(CommunicationJoin, OtherDevicesDoNotCount) {
  KernelsBuilder builder;
  builder.Kernel("gemm", 7, 50, -1, 1);
  builder.Kernel(kAllReduce, 20, 10);
  builder.Kernel("pack", 20, 4);
  builder.Kernel("gemm", 21, 3);
  EXPECT_EQ(CommunicatingIn(builder.Build()), (std::vector<std::string>{kAllReduce}));
}

TEST(CommunicationJoin, KernelThatACollectiveLaunchedItself) {
  KernelsBuilder builder;
  builder.Range("c10d::allreduce_", 0, 100);
  builder.Range("record_param_comms", 10, 90);
  builder.Range("aten::cat", 20, 40);
  builder.Launch(30, 1);
  builder.Launch(50, 2);
  builder.Launch(95, 3);
  builder.Kernel("CatArrayBatchedCopy", 7, 1, 1);
  builder.Kernel("my_exchange", 7, 1, 2);
  builder.Kernel("scale", 7, 1, 3);
  EXPECT_EQ(CommunicatingIn(builder.Build()), (std::vector<std::string>{"my_exchange"}));
}

// Against the law, kernel by kernel.
TEST(CommunicationJoin, AgreesWithTheTwin) {
  constexpr const char* kNames[] = {kAllReduce, "gemm", "mine", "pack"};
  size_t found = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    KernelsBuilder builder;
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t begin = below(40);
      builder.Range(below(2) == 0 ? "record_param_comms" : "aten::cat", begin, begin + below(30));
    }
    std::vector<int64_t> launched;
    for (int64_t i = 0; i < 10; ++i) {
      launched.push_back(below(70));
      builder.Launch(launched.back(), i);
      builder.Kernel(kNames[below(4)], 7 + below(3), 1 + below(9), below(4) == 0 ? -1 : i,
                     below(2));
    }
    const Trace trace = builder.Build();
    const DeviceOpTable& ops = trace.device_ops;
    const auto named = [&](uint32_t op) { return trace.Facts(ops.name[op]).is_communication != 0; };
    const auto launched_by_collective = [&](uint32_t op) {
      if (ops.launch[op] == kNoRow) return false;
      const TraceTime at = trace.api.begin[Index(ops.launch[op])];
      for (uint32_t range = 0; range < trace.ranges.size(); ++range) {
        if (trace.Text(trace.ranges.name[range]) != "record_param_comms") continue;
        if (at < trace.ranges.begin[range] || at >= trace.ranges.end(range)) continue;
        bool in_operator = false;
        for (uint32_t inner = range + 1; inner < trace.ranges.size(); ++inner) {
          in_operator |= trace.Text(trace.ranges.name[inner]) == "aten::cat" &&
                         trace.ranges.begin[inner] <= at && at < trace.ranges.end(inner);
        }
        if (!in_operator) return true;
      }
      return false;
    };
    const auto time = [&](TrackId track, bool communicates) {
      int64_t ns = 0;
      for (uint32_t op = 0; op < ops.size(); ++op) {
        if (ops.track[op] != track) continue;
        if ((named(op) || launched_by_collective(op)) == communicates) {
          ns += ops.interval(Row{op}).Length().ns;
        }
      }
      return ns;
    };
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const TrackId own = ops.track[op];
      bool elsewhere = false;
      for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
        elsewhere |= trace.tracks[track].device == trace.tracks[Index(own)].device &&
                     time(TrackId{track}, false) > time(own, false);
      }
      const bool by_stream = elsewhere && time(own, true) >= time(own, false);
      const bool expected = named(op) || launched_by_collective(op) || by_stream;
      EXPECT_EQ(Communicates(trace, Row{op}), expected) << "seed " << seed << ", operation " << op;
      found += expected && !named(op) ? 1 : 0;
    }
  }
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace trainprof
