// What cuda_program and its tests share: memory that outlives a killed program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

struct CUstream_st;  // a cudaStream_t points to one

namespace cuda_program {

struct Progress {
  static constexpr uint64_t kKept = 1 << 20;
  std::atomic<uint64_t> launches;           // that have returned
  std::atomic<int64_t> launched_ns[kKept];  // when, of launch i; CLOCK_MONOTONIC
};

// Launches before, while and after another client has CUPTI, twice, as the collector is told. `how`:
// the client "stays" subscribed, "leaves", never was ("without"), or was there before ("early").
int SecondClient(const std::function<void()>& launch, const std::string& how);

// Likewise, and the collector is told nothing. `how`: the client lets go of it ("leaves") or "keeps" it.
int RudeClient(const std::function<void()>& launch, const std::string& how);

// One that records beside others, twice, with launches between its rounds and in them. `how`: its first
// round begins before the first use of CUDA ("first"), or "later"; or it "stays" at it to the end.
int SharingClient(const std::function<void()>& launch, const std::string& how);

// `count` functions of the host, of so many milliseconds each, between what launch(stream) launches; then prints when each ran, and on
// which thread. `mode`: in a stream ("host_functions"); of a graph that is launched so often, beside
// kernels ("graph_host_functions"), or alone and without a word ("graph_of_host_functions").
int HostFunctions(const std::string& mode, const std::function<void(CUstream_st*)>& launch,
                  long count, long ms);

}  // namespace cuda_program
