// What a client asks for, by functions that name a subscriber (api_subscriber.cpp) or none
// (api_activity.cpp).
#pragma once

#include "tests/virtual_gpu/cupti/cupti.h"

namespace vgpu {

CUptiResult EnableKind(Cupti& cupti, CUpti_ActivityKind kind);
CUptiResult DisableKind(Cupti& cupti, CUpti_ActivityKind kind);
// Of one API function.
CUptiResult EnableSingle(Cupti& cupti, ApiDomain domain, CUpti_CallbackId cbid, uint8_t enable);
CUptiResult SetAttribute(Cupti& cupti, CUpti_ActivityAttribute id, size_t* bytes, void* value);
CUptiResult GetAttribute(Cupti& cupti, CUpti_ActivityAttribute id, size_t* bytes, void* value);
// Needs neither a driver nor a device: it also reads what a process left that is gone.
CUptiResult NextRecord(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record);

}  // namespace vgpu
