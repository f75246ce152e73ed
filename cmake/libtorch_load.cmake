# Loads one given LibTorch, and only that one, whatever else the machine has installed.

# trainprof_load_torch(<folder that holds TorchConfig.cmake> <install prefix of that LibTorch>)
# Sets TORCH_LIBRARIES, Torch_VERSION and TORCH_CXX_FLAGS in the caller's scope. Errors are fatal, as
# Torch's own files raise them so: libtorch.cmake tries a candidate in a project of its own first.
macro(trainprof_load_torch torch_dir torch_prefix)
  # TorchConfig.cmake gives its own folder as PATHS, which CMake searches last: with Debian's
  # libtorch-dev beside a pip torch, Caffe2, c10 and torch would come from /usr. The prefix goes first.
  list(PREPEND CMAKE_PREFIX_PATH ${torch_prefix})
  set(Caffe2_DIR ${torch_dir}/../Caffe2)
  set(ATen_DIR ${torch_dir}/../ATen)

  # CUDA 12.9 and newer ship no nvToolsExt library, but the configuration of an older CUDA build of
  # Torch still links the target CUDA::nvToolsExt. NVTX 3 is header-only and has the same functions.
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
    target_include_directories(CUDA::nvToolsExt INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(CUDA::nvToolsExt INTERFACE ${CMAKE_DL_LIBS})
  endif()

  # The wheels name libraries that they do not carry (kineto) and warn of each. What matters was
  # tried by then, so only errors are shown.
  set(_saved_log_level ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch REQUIRED CONFIG PATHS ${torch_dir} NO_DEFAULT_PATH)
  set(CMAKE_MESSAGE_LOG_LEVEL ${_saved_log_level})
endmacro()
