# The subject, and the tests' writer of the recording that is shown.
if(TARGET trainprof_viewer_ui)
  target_link_libraries(viewer_ui_benchmark PRIVATE trainprof_viewer_ui trainprof_analysis fmt::fmt ZLIB::ZLIB)
  target_sources(viewer_ui_benchmark PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/viewer/scenes.cpp
    ${PROJECT_SOURCE_DIR}/tests/viewer/open_job.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/trace_script.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/scratch_folder.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/segment_writer.cpp)
  target_compile_definitions(viewer_ui_benchmark PRIVATE TRAINPROF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
else()
  set_target_properties(viewer_ui_benchmark PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
