// How each CUPTI entry point begins: VGPU_NEED_DRIVER refuses where the library cannot work.
#pragma once

#include "tests/virtual_gpu/cupti/cupti.h"

#define VGPU_NEED_DRIVER(function) \
  if (const CUptiResult usable = ::vgpu::Usable(#function); usable != CUPTI_SUCCESS) return usable

#define VGPU_NEED_POINTER(pointer) \
  if ((pointer) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER
