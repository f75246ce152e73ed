# The subject, and what its recording is written with.
target_link_libraries(viewer_frame_benchmark PRIVATE trainprof_viewer_core trainprof_analysis
                                                     fmt::fmt ZLIB::ZLIB)
