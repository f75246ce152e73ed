# The library to measure and the virtual GPU that it runs on.
include(cuda)
if(TARGET trainprof_cuda_headers AND TARGET trainprof_injection AND NOT TRAINPROF_CUDA_VERSION LESS 13000)
  target_link_libraries(cupti_overhead_benchmark PRIVATE trainprof_cuda_headers vgpu_cudart vgpu_cuda
    vgpu_cupti vgpu ZLIB::ZLIB)
  target_compile_definitions(cupti_overhead_benchmark PRIVATE
    BENCHMARK_LIBRARY="$<TARGET_FILE:trainprof_injection>"
    BENCHMARK_VIRTUAL_GPU="${PROJECT_BINARY_DIR}/lib/virtual_gpu")
  add_dependencies(cupti_overhead_benchmark trainprof_injection)
else()
  set_target_properties(cupti_overhead_benchmark PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
