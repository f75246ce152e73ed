# The library to measure, and the NVTX header that calls it.
if(TARGET trainprof_nvtx_headers)
  target_link_libraries(nvtx_overhead_benchmark PRIVATE trainprof_nvtx_headers)
  target_compile_definitions(nvtx_overhead_benchmark PRIVATE
    BENCHMARK_LIBRARY="$<TARGET_FILE:trainprof_injection>")
  add_dependencies(nvtx_overhead_benchmark trainprof_injection)
else()
  set_target_properties(nvtx_overhead_benchmark PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
