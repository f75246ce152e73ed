# The subject, and the tests' own writer of the recording that is opened.
target_link_libraries(cancel_benchmark PRIVATE trainprof_viewer_core trainprof_analysis fmt::fmt ZLIB::ZLIB)
target_sources(cancel_benchmark PRIVATE
  ${PROJECT_SOURCE_DIR}/tests/support/segment_writer.cpp)
