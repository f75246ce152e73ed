// Minimal traces of waits: of streams, devices and the host for each other.
#include "tests/analysis/minimal_traces.h"

namespace trainprof::testing {

std::vector<MinimalTrace> MinimalTracesOfWaits() {
  return {
      {"cross_device_ahead",
       "the host is a step ahead; two devices wait for each other's events",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 7990 step
      call 10 12 cudaStreamWaitEvent | corr=1
      call 13 16 cudaLaunchKernel | corr=2
      call 17 19 cudaEventRecord | corr=3
      call 20 22 cudaStreamWaitEvent | corr=4
      call 23 26 cudaLaunchKernel | corr=5
      call 27 29 cudaEventRecord | corr=6
    end
    stream 0 7
    repeat 40 every 8000
      sync 10 12 Stream Wait Event | corr=1 on-stream=9 on-device=1 record=-994
      kernel 8020 12000 first_half | corr=2
    end
    stream 1 9
    repeat 40 every 8000
      sync 20 22 Stream Wait Event | corr=4 on-stream=7 on-device=0 record=3
      kernel 12010 16010 second_half | corr=5
    end)",
       {{0, kOtherDevice, 4020}, {1, kOtherDevice, 4000}},
       "device-wait",
       4000,
       true},
      {"host_function",
       "a function of the host runs in the stream",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 7990 step
      call 10 13 cudaLaunchKernel | corr=1
      call 14 17 cudaLaunchHostFunc | corr=2
      call 18 21 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 40 every 8000
      kernel 8020 10500 forward | corr=1
      host-function 10505 13500 callback | corr=2
      kernel 13505 16015 backward | corr=3
    end)",
       {{0, kHostFunction, 3000}},
       "host-function|device-wait",
       3000,
       true},
      {"queued_long_dependency",
       "a queued kernel waits for a copy that another device does",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 7990 step
      call 10 13 cudaLaunchKernel | corr=1
      call 14 17 cudaMemcpyPeerAsync | corr=2
      call 18 20 cudaEventRecord | corr=3
      call 21 23 cudaStreamWaitEvent | corr=4
      call 24 27 cudaLaunchKernel | corr=5
    end
    stream 1 9
    repeat 40 every 8000
      copy 8020 12000 Memcpy PtoP (Device -> Device) | corr=2 bytes=80000000
    end
    stream 0 7
    repeat 40 every 8000
      kernel 8020 10000 forward | corr=1
      sync 21 23 Stream Wait Event | corr=4 on-stream=9 on-device=1 record=3
      kernel 12005 16015 backward | corr=5
    end)",
       {{0, kOtherDevice, 2000}, {1, "idle_unknown|idle_dependency|idle_other_device", 4000}},
       "?",
       0,
       true},
      {"pause_after_sync",
       "the host does nothing that is recorded, after a sync",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 7990 step
      call 10 13 cudaLaunchKernel | corr=1
      call 20 3003 cudaStreamSynchronize | corr=2
    end
    stream 0 7
    repeat 40 every 8000
      kernel 15 3000 forward | corr=1
      sync 20 3003 Stream Sync | corr=2
    end)",
       {{0, kNothingNamed, 5010}}},
      {"pause_after_sync_in_epoch",
       "the same within a range around all steps, which tells nothing",
       R"(
    thread 1
    annotation 0 320000 epoch 3
    repeat 40 every 8000
      step 0 7990 step
      call 10 13 cudaLaunchKernel | corr=1
      call 20 3003 cudaStreamSynchronize | corr=2
    end
    stream 0 7
    repeat 40 every 8000
      kernel 15 3000 forward | corr=1
      sync 20 3003 Stream Sync | corr=2
    end)",
       {{0, kNothingNamed, 5010}}},
      {"explicit_sync",
       "a sync in each step, with a millisecond of operators behind it",
       R"(
    thread 1
    repeat 40 every 5000
      step 0 5000 step
      op 5 500 aten::zero_
      op 500 985 aten::add
      call 990 993 cudaLaunchKernel | corr=1
      call 1000 4997 cudaStreamSynchronize | corr=2
    end
    stream 0 7
    repeat 40 every 5000
      kernel 995 4990 forward | corr=1
      sync 1000 4997 Stream Sync | corr=2
    end)",
       {{0, kDrain, 1005}},
       "sync-call|host-sync",
       990},
      {"drain_second_gap",
       "a tiny kernel stands between the sync and the host's work",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 8000 step
      call 10 13 cudaLaunchKernel | corr=1
      call 20 3995 cudaStreamSynchronize | corr=2
      call 4000 4003 cudaLaunchKernel | corr=3
      op 4010 4900 aten::mul
      op 4910 5800 aten::mul
      op 5810 6700 aten::mul
      op 6710 7600 aten::mul
      op 7610 7995 aten::mul
    end
    stream 0 7
    repeat 40 every 8000
      kernel 15 3990 forward | corr=1
      sync 20 3995 Stream Sync | corr=2
      kernel 4005 4007 zero | corr=3
    end)",
       {{0, "idle_sync_drain|idle_launch_bound|idle_host_work", 4020}},
       "sync-call|host-sync",
       3950},
      {"drain_hidden_by_other_thread",
       "a logging thread's short call comes before the loop's wait",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 8000 step
      op 5 900 aten::mul
      op 910 1900 aten::mul
      op 1910 2940 aten::mul
      call 2945 2948 cudaLaunchKernel | corr=1
      call 2950 7995 cudaMemcpyAsync | corr=2
    end
    thread 2
    repeat 40 every 8000
      call 3000 3100 cudaMemcpyAsync | corr=3
    end
    stream 0 7
    repeat 40 every 8000
      kernel 2950 7980 forward | corr=1
      copy 7982 7990 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
    end
    stream 0 9
    repeat 40 every 8000
      copy 3050 3060 Memcpy DtoH (Device -> Pageable) | corr=3 bytes=4
    end)",
       {{0, kDrain, 2962}},
       "host-sync|sync-call",
       2950},
      {"logger_thread_d2h",
       "a logging thread waits for the device; the loop never does",
       R"(
    thread 1
    repeat 40 every 4000
      step 0 4000 step
      call 10 13 cudaLaunchKernel | corr=1
    end
    thread 2
    repeat 40 every 4000
      call 100 3900 cudaMemcpyAsync | corr=2
    end
    stream 0 7
    repeat 40 every 4000
      kernel 4010 7998 forward | corr=1
    end
    stream 0 9
    repeat 40 every 4000
      copy 3880 3890 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
    end)",
       {},
       "",
       0,
       true},
      {"implicit_sync_free",
       "cudaFree waits for the device; then the host has to feed it again",
       R"(
    thread 1
    repeat 40 every 5000
      step 0 5000 step
      op 5 800 aten::mul
      op 810 980 aten::mul
      call 985 988 cudaLaunchKernel | corr=1
      call 1000 4995 cudaFree | corr=2
    end
    stream 0 7
    repeat 40 every 5000
      kernel 990 4985 forward | corr=1
    end)",
       {{0, kDrain, 985}, {0, kAllocation, 10}}},
      {"staging_is_called_drain",
       "a copy of 4 MB from pageable memory is staged by its own call",
       R"(
    thread 1
    repeat 40 every 6000
      step 0 6000 step
      call 10 13 cudaLaunchKernel | corr=1
      call 2950 4600 cudaMemcpyAsync | corr=2
      call 4605 4608 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 40 every 6000
      kernel 15 3000 forward | corr=1
      copy 4000 4590 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=4000000
      kernel 4610 6010 backward | corr=3
    end)",
       {{0, kIssuing, 1020}}},
      {"self_drain",
       "a small blocking copy begins late, behind its own call alone",
       R"(
    thread 1
    repeat 40 every 6000
      step 0 6000 step
      call 10 13 cudaLaunchKernel | corr=1
      call 2990 3600 cudaMemcpyAsync | corr=2
      call 3605 3608 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 40 every 6000
      kernel 15 3000 forward | corr=1
      copy 3500 3590 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=2000000
      kernel 3610 6010 backward | corr=3
    end)",
       {{0, kIssuing, 520}}},
      {"sync_on_other_device",
       "the host waits for the slower of two devices",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 8000 step
      call 10 13 cudaLaunchKernel | corr=1
      call 14 17 cudaLaunchKernel | corr=2
      call 20 7990 cudaStreamSynchronize | corr=3
    end
    stream 0 7
    repeat 40 every 8000
      kernel 15 4000 forward | corr=1
    end
    stream 1 9
    repeat 40 every 8000
      kernel 19 7985 forward | corr=2
      sync 20 7990 Stream Sync | corr=3
    end)",
       {{0, kOtherDevice, 3990}}},
      {"straggler",
       "one device's collective waits for the other's, which comes late",
       R"(
    thread 1
    repeat 40 every 10000
      step 0 9990 step
      call 10 13 cudaLaunchKernel | corr=1
      call 14 17 cudaLaunchKernel | corr=2
      call 18 21 cudaLaunchKernel | corr=3
      call 22 25 cudaLaunchKernel | corr=4
    end
    stream 0 7
    repeat 40 every 10000
      kernel 10020 14900 backward | corr=1
      kernel 14905 20010 ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*) | corr=2
    end
    stream 1 9
    repeat 40 every 10000
      kernel 10020 19900 backward | corr=3
      kernel 19905 20010 ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*) | corr=4
    end)",
       {{0, kForCollective, 5000},
        {0, "exposed_communication", 105},
        {1, "exposed_communication", 105}},
       "exposed-communication",
       2500,
       true},
  };
}

}  // namespace trainprof::testing
