# The library to measure, and the NVTX header that calls it.
if(TARGET trainprof_nvtx_headers)
  target_link_libraries(nvtx_overhead_benchmark PRIVATE trainprof_nvtx_headers ZLIB::ZLIB)
  target_compile_definitions(nvtx_overhead_benchmark PRIVATE
    BENCHMARK_LIBRARY="$<TARGET_FILE:trainprof_injection>")
  add_dependencies(nvtx_overhead_benchmark trainprof_injection)
  # Its peer, where the packages are: scripts/install_packages.sh peers.
  pkg_check_modules(LTTNG_UST QUIET IMPORTED_TARGET lttng-ust)
  if(TARGET PkgConfig::LTTNG_UST)
    add_executable(lttng_pair EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/lttng/lttng_pair.cpp)
    target_include_directories(lttng_pair PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(lttng_pair PRIVATE PkgConfig::LTTNG_UST ${CMAKE_DL_LIBS})
    add_dependencies(nvtx_overhead_benchmark lttng_pair)
    target_compile_definitions(nvtx_overhead_benchmark PRIVATE
      BENCHMARK_LTTNG_COMMAND="${CMAKE_CURRENT_LIST_DIR}/lttng/record.sh $<TARGET_FILE:lttng_pair>")
  endif()
else()
  set_target_properties(nvtx_overhead_benchmark PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
