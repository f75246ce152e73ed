# Finds LibTorch for instrumented_trainer. First of these that compiles, links and starts a program:
#   1. CMAKE_PREFIX_PATH or Torch_DIR, as given by the user (variable or environment)
#   2. the torch package of the active Python (python3 on PATH)
#   3. the torch package of the local venv <source>/.venv (scripts/find_libtorch.sh --install makes it)
#   4. the system's: Debian's libtorch-dev 1.13
# Each candidate is tried in a project of its own, because Torch's CMake files stop the whole configure
# with an error where a CUDA build of Torch meets a machine without the CUDA toolkit, and because a
# wheel whose CUDA libraries were not installed configures well and fails at the link.
#
# Result: TRAINPROF_LIBTORCH_FOUND, and the target trainprof_libtorch to link.
option(TRAINPROF_LIBTORCH "Look for LibTorch and build instrumented_trainer" ON)

include(${CMAKE_CURRENT_LIST_DIR}/libtorch_load.cmake)
set(_libtorch_cmake_dir ${CMAKE_CURRENT_LIST_DIR})
# Looked up anew at each configure: the user may have activated another environment since.
find_program(TRAINPROF_ACTIVE_PYTHON NAMES python3 python NO_CACHE)

# Appends "<source>|<folder of TorchConfig.cmake>" to TRAINPROF_LIBTORCH_CANDIDATES where the folder is new.
function(_libtorch_add_candidate source folder)
  if(NOT EXISTS ${folder}/TorchConfig.cmake)
    return()
  endif()
  get_filename_component(folder ${folder} REALPATH)
  foreach(known IN LISTS TRAINPROF_LIBTORCH_CANDIDATES)
    if(known MATCHES "\\|(.*)$" AND CMAKE_MATCH_1 STREQUAL folder)
      return()
    endif()
  endforeach()
  list(APPEND TRAINPROF_LIBTORCH_CANDIDATES "${source}|${folder}")
  set(TRAINPROF_LIBTORCH_CANDIDATES ${TRAINPROF_LIBTORCH_CANDIDATES} PARENT_SCOPE)
endfunction()

# The folder of TorchConfig.cmake in the torch package that an interpreter would import, or empty.
# It asks for the place only: importing torch takes seconds, and the try project loads it anyway.
function(_libtorch_of_python python out)
  set(${out} "" PARENT_SCOPE)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND package)
    set(${out} ${package}/share/cmake/Torch PARENT_SCOPE)
  endif()
endfunction()

function(_libtorch_candidates)
  set(TRAINPROF_LIBTORCH_CANDIDATES "")
  if(Torch_DIR AND NOT TRAINPROF_LIBTORCH_DIR STREQUAL Torch_DIR)
    _libtorch_add_candidate("Torch_DIR" ${Torch_DIR})
  endif()
  set(environment_prefixes "$ENV{CMAKE_PREFIX_PATH}")
  string(REPLACE ":" ";" environment_prefixes "${environment_prefixes}")
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH environment_prefixes)
    foreach(suffix Torch share/cmake/Torch lib/cmake/Torch lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch)
      _libtorch_add_candidate("CMAKE_PREFIX_PATH" ${prefix}/${suffix})
    endforeach()
  endforeach()
  if(TRAINPROF_ACTIVE_PYTHON)
    _libtorch_of_python(${TRAINPROF_ACTIVE_PYTHON} folder)
    _libtorch_add_candidate("the active Python, ${TRAINPROF_ACTIVE_PYTHON}" "${folder}")
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    _libtorch_of_python(${PROJECT_SOURCE_DIR}/.venv/bin/python folder)
    _libtorch_add_candidate("the local venv, ${PROJECT_SOURCE_DIR}/.venv" "${folder}")
  endif()
  foreach(prefix /usr /usr/local)
    foreach(suffix lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch lib/cmake/Torch share/cmake/Torch)
      _libtorch_add_candidate("the system's packages" ${prefix}/${suffix})
    endforeach()
  endforeach()
  set(TRAINPROF_LIBTORCH_CANDIDATES ${TRAINPROF_LIBTORCH_CANDIDATES} PARENT_SCOPE)
endfunction()

# The install prefix of the LibTorch that a TorchConfig.cmake folder belongs to: the wheel and the zip
# have <prefix>/share/cmake/Torch, Debian <prefix>/lib/<triplet>/cmake/Torch.
function(_libtorch_prefix folder out)
  if(folder MATCHES "^(.*)/(share|lib|lib/${CMAKE_LIBRARY_ARCHITECTURE})/cmake/Torch$")
    set(prefix ${CMAKE_MATCH_1})
    string(REGEX REPLACE "/lib$" "" prefix ${prefix})
  else()
    get_filename_component(prefix ${folder}/../../.. ABSOLUTE)
  endif()
  set(${out} ${prefix} PARENT_SCOPE)
endfunction()

# Configures, builds and runs a program of ten lines against one candidate. The log stays in the
# build folder, and names what was wrong.
function(_libtorch_try folder prefix log out)
  set(try_dir ${PROJECT_BINARY_DIR}/libtorch_try)
  file(REMOVE_RECURSE ${try_dir})
  file(WRITE ${try_dir}/CMakeLists.txt
"cmake_minimum_required(VERSION 3.24)
project(libtorch_try LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
include(${_libtorch_cmake_dir}/libtorch_load.cmake)
trainprof_load_torch(${folder} ${prefix})
add_executable(libtorch_try main.cpp)
target_link_libraries(libtorch_try PRIVATE \${TORCH_LIBRARIES})
")
  file(WRITE ${try_dir}/main.cpp
"#include <ATen/Parallel.h>
#include <torch/version.h>
#include <cstdio>
int main() {
  std::printf(\"LibTorch %s\\n\", TORCH_VERSION);
  return at::get_num_threads() > 0 ? 0 : 1;
}
")
  set(steps
    "${CMAKE_COMMAND}|-S|${try_dir}|-B|${try_dir}/build|-G|${CMAKE_GENERATOR}|-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}|-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}|-DCMAKE_BUILD_TYPE=Release"
    "${CMAKE_COMMAND}|--build|${try_dir}/build"
    "${try_dir}/build/libtorch_try")
  file(WRITE ${log} "")
  set(${out} TRUE PARENT_SCOPE)
  foreach(step IN LISTS steps)
    string(REPLACE "|" ";" step "${step}")
    execute_process(COMMAND ${step} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
    file(APPEND ${log} "$ ${step}\n${output}\n")
    if(NOT status EQUAL 0)
      file(APPEND ${log} "failed: ${status}\n")
      set(${out} FALSE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_libtorch_choose)
  _libtorch_candidates()
  set(number 0)
  foreach(candidate IN LISTS TRAINPROF_LIBTORCH_CANDIDATES)
    math(EXPR number "${number} + 1")
    string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${candidate}")
    set(source "${CMAKE_MATCH_1}")
    set(folder "${CMAKE_MATCH_2}")
    _libtorch_prefix(${folder} prefix)
    set(usable TRUE)
    if(NOT folder STREQUAL TRAINPROF_LIBTORCH_DIR)
      message(STATUS "Trying the LibTorch of ${source}: ${folder}")
      set(log ${PROJECT_BINARY_DIR}/libtorch_try_${number}.log)
      _libtorch_try(${folder} ${prefix} ${log} usable)
      # What an earlier choice left in the cache would mix two LibTorches.
      foreach(stale Torch_DIR Caffe2_DIR ATen_DIR TORCH_LIBRARY c10_LIBRARY kineto_LIBRARY C10_CUDA_LIBRARY)
        unset(${stale} CACHE)
      endforeach()
    endif()
    if(usable)
      set(TRAINPROF_LIBTORCH_DIR ${folder} CACHE INTERNAL "folder of the chosen TorchConfig.cmake")
      set(TRAINPROF_LIBTORCH_PREFIX ${prefix} CACHE INTERNAL "install prefix of the chosen LibTorch")
      set(TRAINPROF_LIBTORCH_SOURCE "${source}" CACHE INTERNAL "where the chosen LibTorch came from")
      return()
    endif()
    message(WARNING "The LibTorch of ${source} does not work here, the next one is tried. See ${log}")
  endforeach()
  set(TRAINPROF_LIBTORCH_DIR "" CACHE INTERNAL "folder of the chosen TorchConfig.cmake")
endfunction()

set(TRAINPROF_LIBTORCH_FOUND FALSE)
if(NOT TRAINPROF_LIBTORCH)
  message(STATUS "LibTorch not looked for (TRAINPROF_LIBTORCH=OFF); instrumented_trainer is left out")
else()
  _libtorch_choose()
  if(NOT TRAINPROF_LIBTORCH_DIR)
    trainprof_absent("LibTorch (for instrumented_trainer)"
      "Get it: scripts/find_libtorch.sh --install, or apt-get install libtorch-dev, or pass -DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)').")
  else()
    trainprof_load_torch(${TRAINPROF_LIBTORCH_DIR} ${TRAINPROF_LIBTORCH_PREFIX})
    message(STATUS "LibTorch ${Torch_VERSION} from ${TRAINPROF_LIBTORCH_SOURCE}: ${TRAINPROF_LIBTORCH_PREFIX}")
    add_library(trainprof_libtorch INTERFACE)
    target_link_libraries(trainprof_libtorch INTERFACE ${TORCH_LIBRARIES})
    set(TRAINPROF_LIBTORCH_FOUND TRUE)
  endif()
endif()
