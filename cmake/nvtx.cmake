# Finds NVTX 3, a folder of headers: TRAINPROF_NVTX_INCLUDE, else where NVIDIA's headers may lie, else
# the system's.
#
# Result: TRAINPROF_NVTX_INCLUDE_DIR, false when there is none.
include_guard(DIRECTORY)
include(nvidia_headers)

set(TRAINPROF_NVTX_INCLUDE "" CACHE PATH "Folder that holds nvtx3/nvToolsExt.h")
set(TRAINPROF_NVTX_HELP
    "Get it: scripts/find_libtorch.sh --install, or pip install nvidia-nvtx (headers only), or the CUDA toolkit, or set TRAINPROF_NVTX_INCLUDE.")
trainprof_find_nvidia_header(TRAINPROF_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h "${TRAINPROF_NVTX_INCLUDE}")
