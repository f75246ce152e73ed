# Writes the segments that are read: the tests' own writer.
target_sources(recording_read_benchmark PRIVATE
  ${PROJECT_SOURCE_DIR}/tests/support/segment_writer.cpp)
