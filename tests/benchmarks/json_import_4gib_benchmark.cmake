# Writes and reads gzip files.
target_link_libraries(json_import_4gib_benchmark PRIVATE trainprof_trace fmt::fmt ZLIB::ZLIB)
