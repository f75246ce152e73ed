// NVTX calls in one place, so that the rest of the trainer builds alike with and without the
// headers.
#include "instrumented_trainer/nvtx_ranges.h"

#ifdef TRAINER_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trainer {

#ifdef TRAINER_HAS_NVTX

bool NvtxCompiledIn() { return true; }

Range::Range(const char* name) { nvtxRangePushA(name); }

Range::Range(const char* name, uint64_t payload) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = payload;
  nvtxRangePushEx(&attributes);
}

Range::~Range() { nvtxRangePop(); }

void NameThisThread(const char* name) {
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), name);
}

#else

bool NvtxCompiledIn() { return false; }
Range::Range(const char*) {}
Range::Range(const char*, uint64_t) {}
Range::~Range() {}
void NameThisThread(const char*) {}

#endif

}  // namespace trainer
