// What communication kernels do for the program, as far as their names and what launched them tell: which
// advice suits them.
#pragma once

#include <string_view>

#include "trace/tables/trace.h"

namespace trainprof {

enum class CollectiveUse : uint8_t {
  kSum,     // all-reduce: of gradients, or of a layer's parts
  kShards,  // all-gather, reduce-scatter: of weights and gradients of which each rank keeps a part
  kExchange,  // all-to-all: of embeddings by table, of tokens by expert
  kExperts,   // the same of tokens alone, by what is made for it: DeepEP and its like
  kPair,      // send and receive: between the stages of a pipeline
  kOther,     // broadcast and the like; or nothing tells
};

// Of a row of device_ops that Communicates(): as its source's record of the collective calls it ("allreduce"), else
// torch's range that launched it ("all_to_all" of "nccl:all_to_all"), else the kernel's function. O(log n + nesting).
std::string_view OperationOf(const Trace& trace, Row op);
CollectiveUse UseOf(const Trace& trace, Row op);

}  // namespace trainprof
