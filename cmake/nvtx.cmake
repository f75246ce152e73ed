# Finds NVTX 3, a folder of headers: TRAINPROF_NVTX_INCLUDE, else the CUDA toolkit, the PyPI package
# nvidia-nvtx of the active Python or of the local .venv (scripts/find_libtorch.sh --install puts it
# there), the system's.
#
# Result: TRAINPROF_NVTX_INCLUDE_DIR, false when there is none.
include_guard(DIRECTORY)

set(TRAINPROF_NVTX_INCLUDE "" CACHE PATH "Folder that holds nvtx3/nvToolsExt.h")
set(TRAINPROF_NVTX_HELP
    "Get it: scripts/find_libtorch.sh --install, or pip install nvidia-nvtx (headers only), or the CUDA toolkit, or set TRAINPROF_NVTX_INCLUDE.")

function(_nvtx_folders out)
  find_package(CUDAToolkit QUIET)
  set(folders ${TRAINPROF_NVTX_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include /opt/cuda/include)
  # A toolkit without its compiler is not found by name: take the newest folder.
  file(GLOB toolkits /usr/local/cuda-*/include)
  list(SORT toolkits COMPARE NATURAL ORDER DESCENDING)
  list(APPEND folders ${toolkits})

  find_program(python NAMES python3 python NO_CACHE)
  if(python)
    execute_process(
      COMMAND ${python} -c "import nvidia; print(';'.join(nvidia.__path__))"
      OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  file(GLOB venv_packages ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia)
  foreach(package IN LISTS packages venv_packages)
    file(GLOB includes ${package}/*/include)
    list(APPEND folders ${includes})
  endforeach()
  set(${out} ${folders} PARENT_SCOPE)
endfunction()

# A folder that was found once may be gone by now, and one that was absent may have come.
if(TRAINPROF_NVTX_INCLUDE_DIR AND NOT EXISTS ${TRAINPROF_NVTX_INCLUDE_DIR}/nvtx3/nvToolsExt.h)
  unset(TRAINPROF_NVTX_INCLUDE_DIR CACHE)
endif()
if(NOT TRAINPROF_NVTX_INCLUDE_DIR)
  _nvtx_folders(_folders)
  find_path(TRAINPROF_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${_folders})
  mark_as_advanced(TRAINPROF_NVTX_INCLUDE_DIR)
endif()
