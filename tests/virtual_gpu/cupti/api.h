// How each CUPTI entry point begins: VGPU_NEED_DRIVER refuses where the library cannot work.
#pragma once

#include "tests/virtual_gpu/cupti/clients.h"

#define VGPU_NEED_DRIVER(function) \
  if (const CUptiResult usable = ::vgpu::Usable(#function); usable != CUPTI_SUCCESS) return usable

// By functions that name a subscriber, or that name none.
#define VGPU_CLAIM(scope)                                                                  \
  if (const CUptiResult claim = ::vgpu::TheClients().Claim(scope); claim != CUPTI_SUCCESS) \
  return claim

#define VGPU_NEED_PROCESS(function) \
  VGPU_NEED_DRIVER(function);       \
  VGPU_CLAIM(::vgpu::Scope::kProcess)

#define VGPU_NEED_POINTER(pointer) \
  if ((pointer) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER
