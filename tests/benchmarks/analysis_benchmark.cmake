target_link_libraries(analysis_benchmark PRIVATE trainprof_analysis fmt::fmt ZLIB::ZLIB)
