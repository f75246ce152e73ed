// Minimal traces of hosts: loaders, other threads, and what a thread does itself.
#include "tests/analysis/minimal_traces.h"

namespace trainprof::testing {

std::vector<MinimalTrace> MinimalTracesOfHosts() {
  return {
      {"every5_n20",
       "every fifth batch takes three milliseconds",
       R"(
    thread 1
    repeat 4 every 23000
      step 0 4000 step
      annotation 5 15 data_wait
      call 20 23 cudaLaunchKernel | corr=1
      call 30 3995 cudaStreamSynchronize | corr=11
      step 4000 8000 step
      annotation 4005 4015 data_wait
      call 4020 4023 cudaLaunchKernel | corr=2
      call 4030 7995 cudaStreamSynchronize | corr=12
      step 8000 12000 step
      annotation 8005 8015 data_wait
      call 8020 8023 cudaLaunchKernel | corr=3
      call 8030 11995 cudaStreamSynchronize | corr=13
      step 12000 16000 step
      annotation 12005 12015 data_wait
      call 12020 12023 cudaLaunchKernel | corr=4
      call 12030 15995 cudaStreamSynchronize | corr=14
      step 16000 23000 step
      annotation 16005 19005 data_wait
      call 19010 19013 cudaLaunchKernel | corr=5
      call 19020 22995 cudaStreamSynchronize | corr=15
    end
    stream 0 7
    repeat 4 every 23000
      kernel 25 3990 forward | corr=1
      sync 30 3995 Stream Sync | corr=11
      kernel 4025 7990 forward | corr=2
      sync 4030 7995 Stream Sync | corr=12
      kernel 8025 11990 forward | corr=3
      sync 8030 11995 Stream Sync | corr=13
      kernel 12025 15990 forward | corr=4
      sync 12030 15995 Stream Sync | corr=14
      kernel 19015 22990 forward | corr=5
      sync 19020 22995 Stream Sync | corr=15
    end)",
       {{0, kInputWait, 608}, {0, kDrain, 27}},
       "input-bound",
       600},
      {"prefetch_thread_silent",
       "another thread makes the batch, unrecorded, and copies it",
       R"(
    thread 1
    repeat 40 every 10000
      step 0 10000 step
      annotation 5 8000 data_wait
      call 8010 8012 cudaStreamWaitEvent | corr=3
      call 8015 8018 cudaLaunchKernel | corr=4
    end
    thread 2
    repeat 40 every 10000
      call 7980 7985 cudaMemcpyAsync | corr=1
      call 7986 7990 cudaEventRecord | corr=2
    end
    stream 0 9
    repeat 40 every 10000
      copy 7995 8090 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=2000000
    end
    stream 0 7
    repeat 40 every 10000
      sync 8010 8012 Stream Wait Event | corr=3 on-stream=9 on-device=0 record=2
      kernel 8095 10050 forward | corr=4
    end)",
       {{0, kInputWait, 7930}},
       "input-bound",
       7900},
      {"worker_range_hides_input",
       "the same, with a range where the other thread works",
       R"(
    thread 1
    repeat 40 every 10000
      step 0 10000 step
      annotation 5 8000 data_wait
      call 8010 8012 cudaStreamWaitEvent | corr=3
      call 8015 8018 cudaLaunchKernel | corr=4
    end
    thread 2
    repeat 40 every 10000
      annotation 10 7975 decode
      call 7980 7985 cudaMemcpyAsync | corr=1
      call 7986 7990 cudaEventRecord | corr=2
    end
    stream 0 9
    repeat 40 every 10000
      copy 7995 8090 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=2000000
    end
    stream 0 7
    repeat 40 every 10000
      sync 8010 8012 Stream Wait Event | corr=3 on-stream=9 on-device=0 record=2
      kernel 8095 10050 forward | corr=4
    end)",
       {{0, kInputWait, 7930}},
       "input-bound",
       7900},
      {"alloc_on_other_thread",
       "a prefetching thread allocates while the loop waits for its batch",
       R"(
    thread 1
    repeat 40 every 10000
      step 0 10000 step
      annotation 5 8000 data_wait
      call 8010 8012 cudaStreamWaitEvent | corr=3
      call 8015 8018 cudaLaunchKernel | corr=4
    end
    thread 2
    repeat 40 every 10000
      call 1000 4000 cudaMalloc
      call 7980 7985 cudaMemcpyAsync | corr=1
      call 7986 7990 cudaEventRecord | corr=2
    end
    stream 0 9
    repeat 40 every 10000
      copy 7995 8090 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=2000000
    end
    stream 0 7
    repeat 40 every 10000
      sync 8010 8012 Stream Wait Event | corr=3 on-stream=9 on-device=0 record=2
      kernel 8095 10050 forward | corr=4
    end)",
       {{0, kInputWait, 7930}}},
      {"foreign_sync",
       "the loop's thread waited, the thread that launches next did not",
       R"(
    thread 1
    repeat 40 every 8000
      step 0 8000 step
      call 20 3003 cudaStreamSynchronize | corr=2
    end
    thread 2
    repeat 40 every 8000
      call 10 13 cudaLaunchKernel | corr=1
      annotation 400 7500 tokenize
      call 7505 7508 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 40 every 8000
      kernel 15 3000 forward | corr=1
      sync 20 3003 Stream Sync | corr=2
      kernel 7510 8005 backward | corr=3
    end)",
       {{0, kHostWork, 4500}}},
      {"ops_half_ms",
       "ten operators of half a millisecond, a short kernel each",
       R"(
    thread 1
    repeat 400 every 600
      op 0 500 aten::mul
      call 490 493 cudaLaunchKernel | corr=1
    end
    repeat 40 every 6000
      step 0 6000 step
    end
    stream 0 7
    repeat 400 every 600
      kernel 495 595 mul | corr=1
    end)",
       {{0, kOperators, 5000}},
       "launch-bound|host-work",
       4900},
      {"ops_1100us",
       "the same operators, of 1.1 ms each",
       R"(
    thread 1
    repeat 400 every 1200
      op 0 1100 aten::mul
      call 1090 1093 cudaLaunchKernel | corr=1
    end
    repeat 40 every 12000
      step 0 12000 step
    end
    stream 0 7
    repeat 400 every 1200
      kernel 1095 1195 mul | corr=1
    end)",
       {{0, kOperators, 11000}},
       "launch-bound|host-work",
       10900},
      {"named_host_work",
       "three milliseconds in the user's own range",
       R"(
    thread 1
    repeat 40 every 5000
      step 0 5000 step
      annotation 5 3005 tokenize
      call 3010 3013 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 40 every 5000
      kernel 3015 5005 forward | corr=1
    end)",
       {{0, kHostWork, 3010}},
       "host-work",
       3000},
      {"sync_inside_data_wait",
       "what waits for a batch waits for an event within",
       R"(
    thread 1
    repeat 40 every 10000
      step 0 10000 step
      annotation 5 8000 data_wait
      call 10 7990 cudaEventSynchronize | corr=9
      call 8010 8013 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 40 every 10000
      kernel 8015 10005 forward | corr=1
    end)",
       {{0, kInputWait, 7995}, {0, kOperators, 15}},
       "input-bound",
       7950},
  };
}

}  // namespace trainprof::testing
