# One translation unit a room, where the build is from nothing: most of a compiler's time goes into headers and
# templates that the files of a room share. scripts/test.sh, quickstart.sh and fuzz.sh ask for it; without it, as at
# the desk, one changed file is one compiled file.
option(TRAINPROF_UNITY "Compile the files of a folder together: builds from nothing take half the time" OFF)
set(TRAINPROF_UNITY_FILES 12)  # at most in one unit, so that two processors have work to the end

# trainprof_rooms(<target> [ALONE <pattern>...])
# Groups the target's C++ files by folder. Files that match one of the patterns are compiled alone: members of a
# registry, which repeat each other's names on purpose, its list, which tests replace, and what needs macros of its own.
function(trainprof_rooms target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "ALONE")
  if(NOT TRAINPROF_UNITY)
    return()
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
