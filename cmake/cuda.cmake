# Finds the headers of CUDA and CUPTI (no library is linked: CUPTI is loaded at run time):
# TRAINPROF_CUDA_INCLUDE, else the toolkit, else the PyPI packages of the active Python or the local .venv.
#
# Result: TRAINPROF_CUDA_INCLUDE_DIR, false when there is none; TRAINPROF_CUDA_VERSION, e.g. 13000; the
# target trainprof_cuda_headers. Both headers are there or neither is taken.
include_guard(DIRECTORY)

set(TRAINPROF_CUDA_INCLUDE "" CACHE PATH "Folder that holds cuda_runtime_api.h, and cupti.h unless that is in extras/CUPTI")
set(TRAINPROF_CUDA_HELP
    "Get them: the CUDA toolkit, or pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cupti (headers only), or set TRAINPROF_CUDA_INCLUDE.")

function(_cuda_folders out)
  find_package(CUDAToolkit QUIET)
  set(folders ${TRAINPROF_CUDA_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include /opt/cuda/include)
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

# What was found once may be gone by now, and what was absent may have come.
foreach(_found IN ITEMS CUDA:cuda_runtime_api.h CUPTI:cupti.h)
  string(REPLACE ":" ";" _found ${_found})
  list(GET _found 0 _name)
  list(GET _found 1 _header)
  if(TRAINPROF_${_name}_INCLUDE_DIR AND NOT EXISTS ${TRAINPROF_${_name}_INCLUDE_DIR}/${_header})
    unset(TRAINPROF_${_name}_INCLUDE_DIR CACHE)
  endif()
  if(NOT TRAINPROF_${_name}_INCLUDE_DIR)
    _cuda_folders(_folders)
    find_path(TRAINPROF_${_name}_INCLUDE_DIR ${_header} HINTS ${_folders}
              PATH_SUFFIXES ../extras/CUPTI/include)
    mark_as_advanced(TRAINPROF_${_name}_INCLUDE_DIR)
  endif()
endforeach()

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
