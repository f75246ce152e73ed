# JSON and gzip of the peers, and fmt for file names.
target_link_libraries(chrome_export_benchmark PRIVATE nlohmann_json::nlohmann_json fmt::fmt ZLIB::ZLIB)
