// A small client of CUPTI for the tests: it records everything into memory.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace vgpu::testing {

// A record, copied out of its buffer.
struct AnyRecord {
  CUpti_ActivityKind kind;
  std::vector<uint8_t> bytes;
  size_t buffer;  // how many buffers came before its own

  // The fields that the emulated version has; the others are zero.
  template <class Struct>
  Struct As() const {
    Struct body = {};
    memcpy(&body, bytes.data(), std::min(bytes.size(), sizeof body));
    return body;
  }
};

struct Callback {
  CUpti_CallbackDomain domain;
  uint32_t cbid;
  CUpti_ApiCallbackSite site;
  std::string function;
  std::string symbol;
  uint32_t correlation;
};

// How it asks CUPTI; set before Start().
struct ClientOptions {
  size_t buffer_bytes = 64 << 10;
  size_t max_buffers = SIZE_MAX;  // requests beyond get none
  bool zeroes_buffers = false;
};

// Registers buffers and the clock, and enables the kinds. Once a process.
void Start(const std::vector<CUpti_ActivityKind>& kinds, const ClientOptions& options = {});
// All that was delivered so far, in the order of delivery.
std::vector<AnyRecord> Records();
size_t BuffersDelivered();
// After a forced flush.
std::vector<AnyRecord> AllRecords();

template <class Struct>
std::vector<Struct> Select(const std::vector<AnyRecord>& records, CUpti_ActivityKind kind) {
  std::vector<Struct> selected;
  for (const AnyRecord& record : records) {
    if (record.kind == kind) selected.push_back(record.As<Struct>());
  }
  return selected;
}

// Subscribes, with callbacks kept.
CUpti_SubscriberHandle SubscribeAll();
std::vector<Callback> Callbacks();

uint64_t CUPTIAPI MonotonicNs();

}  // namespace vgpu::testing
