#include "tests/virtual_gpu/cupti_client.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>
#include <mutex>

namespace vgpu::testing {
namespace {

struct State {
  std::mutex lock;
  ClientOptions options;
  size_t requested = 0;
  size_t delivered = 0;
  std::vector<AnyRecord> records;
  std::vector<Callback> callbacks;
};
State& TheState() {
  static State* const state = new State;
  return *state;
}

void CUPTIAPI Request(uint8_t** data, size_t* size, size_t* max_records) {
  State& state = TheState();
  const std::lock_guard guard(state.lock);
  *max_records = 0;
  *data = nullptr;
  *size = 0;
  if (state.requested++ >= state.options.max_buffers) return;
  *size = state.options.buffer_bytes;
  *data = static_cast<uint8_t*>(aligned_alloc(8, *size));
  memset(*data, state.options.zeroes_buffers ? 0 : 0xAB, *size);
}

void CUPTIAPI Complete(CUcontext, uint32_t, uint8_t* data, size_t, size_t valid) {
  State& state = TheState();
  const std::lock_guard guard(state.lock);
  CUpti_Activity* record = nullptr;
  std::vector<uint8_t*> begins;
  while (cuptiActivityGetNextRecord(data, valid, &record) == CUPTI_SUCCESS) {
    begins.push_back(reinterpret_cast<uint8_t*>(record));
  }
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint8_t* end = i + 1 < begins.size() ? begins[i + 1] : data + valid;
    const auto kind = reinterpret_cast<const CUpti_Activity*>(begins[i])->kind;
    state.records.push_back(
        {kind, std::vector<uint8_t>(begins[i], const_cast<uint8_t*>(end)), state.delivered});
  }
  ++state.delivered;
  free(data);
}

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                         const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API && domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  const std::lock_guard guard(TheState().lock);
  TheState().callbacks.push_back({domain, cbid, call->callbackSite, call->functionName,
                                  call->symbolName == nullptr ? "" : call->symbolName,
                                  call->correlationId});
}

}  // namespace

uint64_t CUPTIAPI MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void Start(const std::vector<CUpti_ActivityKind>& kinds, const ClientOptions& options) {
  TheState().options = options;
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(MonotonicNs), CUPTI_SUCCESS);
  size_t bytes = 1;
  uint8_t zeroed = options.zeroes_buffers;
  ASSERT_EQ(
      cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &zeroed),
      CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityRegisterCallbacks(Request, Complete), CUPTI_SUCCESS);
  for (const CUpti_ActivityKind kind : kinds) {
    ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS) << kind;
  }
}

std::vector<AnyRecord> Records() {
  const std::lock_guard guard(TheState().lock);
  return TheState().records;
}

size_t BuffersDelivered() {
  const std::lock_guard guard(TheState().lock);
  return TheState().delivered;
}

std::vector<AnyRecord> AllRecords() {
  EXPECT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
  return Records();
}

CUpti_SubscriberHandle SubscribeAll() {
  CUpti_SubscriberHandle subscriber = nullptr;
  EXPECT_EQ(cuptiSubscribe(&subscriber, OnCallback, nullptr), CUPTI_SUCCESS);
  return subscriber;
}

std::vector<Callback> Callbacks() {
  const std::lock_guard guard(TheState().lock);
  return TheState().callbacks;
}

}  // namespace vgpu::testing
