// What we ask CUPTI for as one of its clients. Its functions serve the process, with one client; from
// CUPTI 13.3 on there are others that name a subscriber, and serve several beside each other. The two
// do not go together (NVIDIA's "V1 to V2 API migration"): what uses the ones finds the others refused
// for as long as anybody is subscribed.
//
// torch.profiler has Kineto, which uses those of the process. So do we where it is, and hand CUPTI over
// (core/lending.h); elsewhere we name ourselves, and whoever else does so records as well.
#pragma once

#include "collectors/cupti/api.h"

namespace trainprof::collectors {

struct CuptiLibrary;

struct BufferCallbacks {
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
};

struct CuptiClient {
  const CuptiApi* api;
  CUpti_SubscriberHandle subscriber;  // nullptr: none
  bool shares;                        // by functions that name it

  CUptiResult Enable(CUpti_ActivityKind kind) const;
  CUptiResult Disable(CUpti_ActivityKind kind) const;
  CUptiResult EnableRuntimeApi(CUpti_CallbackId cbid, bool on) const;
  CUptiResult EnableDriverApi(CUpti_CallbackId cbid, bool on) const;
  CUptiResult SetAttribute(int attribute, size_t* bytes, void* value) const;
  CUptiResult GetAttribute(int attribute, size_t* bytes, void* value) const;
  CUptiResult GetDropped(size_t* dropped) const;
  CUptiResult GetTimestamp(uint64_t* now) const;
  CUptiResult SetClock(uint64_t (*now)()) const;
  CUptiResult SetThreadIdType(int type) const;
  // One pair for the process: the last one that was given.
  CUptiResult SetBuffers(const BufferCallbacks& callbacks) const;

  // Whether one function can be switched on by its number.
  bool HasSingleCalls() const;
  // Whether another client records something, as far as can be told while we record nothing but
  // `ours`; true where CUPTI does not tell.
  bool OthersRecord(const CUpti_ActivityKind* ours, size_t count) const;
};

// Whether this library and driver let several clients record.
bool CanShare(const CuptiLibrary& library);
// Whether we are to begin so: TRAINPROF_CUPTI_SCOPE is "subscriber", or it is not "process" and Kineto
// is not in this process.
bool PrefersToShare();

}  // namespace trainprof::collectors
