# JSON of the peer, and fmt for file names.
target_link_libraries(chrome_export_benchmark PRIVATE nlohmann_json::nlohmann_json fmt::fmt)
