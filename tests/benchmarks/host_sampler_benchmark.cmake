# The sampler's sources.
target_link_libraries(host_sampler_benchmark PRIVATE trainprof_profiler fmt::fmt)
