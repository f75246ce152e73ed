# One translation unit a room, where the build is from nothing: most of a compiler's time goes into headers and
# templates that the files of a room share. scripts/test.sh, quickstart.sh and fuzz.sh ask for it; without it, as at
# the desk, one changed file is one compiled file.
option(TRAINPROF_UNITY "Compile the files of a folder together: builds from nothing take half the time" OFF)
# Such a build is for running; one for a debugger is made file by file. Lines of source are enough here: types and
# variables take GCC up to a third of its time.
if(TRAINPROF_UNITY AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  add_compile_options(-g1)
endif()
set(TRAINPROF_UNITY_FILES 12)  # at most in one unit, so that two processors have work to the end

# Headers that most files include are parsed once for all targets with the same flags, which saves an eighth of Clang's
# time on a build from nothing. Not GCC's, which takes a tenth longer with them: to load is slower than to parse.
set(TRAINPROF_COMMON_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits>
  <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
  <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
set(TRAINPROF_PRECOMPILE OFF)
if(TRAINPROF_UNITY AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(TRAINPROF_PRECOMPILE ON)
endif()

# trainprof_headers(<set> HEADERS <header>... LIBRARIES <library>...)
# A set of those headers, compiled with the flags that the libraries give.
function(trainprof_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;LIBRARIES")
  if(NOT TRAINPROF_PRECOMPILE)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/headers.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/generated/headers.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} fmt::fmt)
  target_precompile_headers(${name} PRIVATE ${TRAINPROF_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()

trainprof_headers(trainprof_hot_headers LIBRARIES trainprof_flags)
trainprof_headers(trainprof_cold_headers HEADERS <nlohmann/json.hpp>
  LIBRARIES trainprof_flags trainprof_cold_flags nlohmann_json::nlohmann_json)

# trainprof_rooms(<target> [HEADERS <set>] [ALONE <pattern>...])
# Groups the target's C++ files by folder, and gives them the set's headers: those of its flags. Files that match one of
# the patterns are compiled alone: members of a registry, which repeat each other's names on purpose, its list, which
# tests replace, and what needs macros of its own.
function(trainprof_rooms target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "HEADERS" "ALONE")
  if(NOT TRAINPROF_UNITY)
    return()
  endif()
  if(ARG_HEADERS AND TRAINPROF_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${ARG_HEADERS})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    set(alone FALSE)
    foreach(pattern IN LISTS ARG_ALONE)
      if(path MATCHES "${pattern}")
        set(alone TRUE)
      endif()
    endforeach()
    if(alone OR NOT path MATCHES "\\.cpp$")
      continue()
    endif()
    get_filename_component(room ${path} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${room} room)
    math(EXPR count "0${count_of_${room}} + 1")
    set(count_of_${room} ${count})
    math(EXPR part "(${count} - 1) / ${TRAINPROF_UNITY_FILES}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}_${part})
  endforeach()
endfunction()
