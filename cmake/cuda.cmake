# Finds the headers of CUDA and CUPTI (no library is linked: CUPTI is loaded at run time):
# TRAINPROF_CUDA_INCLUDE, else where NVIDIA's headers may lie.
#
# Result: TRAINPROF_CUDA_INCLUDE_DIR, false when there is none; TRAINPROF_CUDA_VERSION, e.g. 13000; the
# target trainprof_cuda_headers. Both headers are there or neither is taken.
include_guard(DIRECTORY)
include(nvidia_headers)

set(TRAINPROF_CUDA_INCLUDE "" CACHE PATH "Folder that holds cuda_runtime_api.h, and cupti.h unless that is in extras/CUPTI")
set(TRAINPROF_CUDA_HELP
    "Get them: the CUDA toolkit, or pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cupti (headers only), or set TRAINPROF_CUDA_INCLUDE.")

trainprof_find_nvidia_header(TRAINPROF_CUDA_INCLUDE_DIR cuda_runtime_api.h "${TRAINPROF_CUDA_INCLUDE}")
trainprof_find_nvidia_header(TRAINPROF_CUPTI_INCLUDE_DIR cupti.h "${TRAINPROF_CUDA_INCLUDE}"
                             PATH_SUFFIXES ../extras/CUPTI/include)

set(TRAINPROF_CUDA_VERSION 0)
if(TRAINPROF_CUDA_INCLUDE_DIR AND TRAINPROF_CUPTI_INCLUDE_DIR AND EXISTS ${TRAINPROF_CUDA_INCLUDE_DIR}/cuda.h)
  file(STRINGS ${TRAINPROF_CUDA_INCLUDE_DIR}/cuda.h _line REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+" TRAINPROF_CUDA_VERSION "${_line}")
  if(NOT TARGET trainprof_cuda_headers)
    add_library(trainprof_cuda_headers INTERFACE)
    target_include_directories(trainprof_cuda_headers SYSTEM INTERFACE
      ${TRAINPROF_CUDA_INCLUDE_DIR} ${TRAINPROF_CUPTI_INCLUDE_DIR})
  endif()
else()
  unset(TRAINPROF_CUDA_INCLUDE_DIR CACHE)
endif()
