target_sources(recording_read_benchmark PRIVATE
  ${PROJECT_SOURCE_DIR}/tests/trace/recording/segment_writer.cpp)
