# The peers: nlohmann's SAX parser with a handler that does nothing, and simdjson's on-demand parser
# filling columns.
target_link_libraries(json_import_benchmark PRIVATE nlohmann_json::nlohmann_json fmt::fmt)
find_package(simdjson QUIET CONFIG)
if(simdjson_FOUND)
  target_link_libraries(json_import_benchmark PRIVATE simdjson::simdjson)
  target_compile_definitions(json_import_benchmark PRIVATE TRAINPROF_HAS_SIMDJSON)
else()
  trainprof_absent("simdjson (a peer in json_import_benchmark)" "apt-get install libsimdjson-dev")
endif()
