# TRAINPROF_STATIC: programs that need nothing but the C library and GCC's (libgcc_s) of the machine they run on, as a
# wheel's must. libgcc linked in would need glibc 2.35 where 2.34 does. Where a library has no archive the shared one is
# taken; scripts/build_wheel.sh fails then and names it.
include_guard(GLOBAL)
option(TRAINPROF_STATIC "Link third-party libraries and the C++ runtime into the programs" OFF)
if(TRAINPROF_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  set(ZLIB_USE_STATIC_LIBS ON)
  set(PKG_CONFIG_ARGN --static)
  add_link_options(-static-libstdc++ -Wl,--as-needed -Wl,--gc-sections)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()

# trainprof_static(<target>): of what was found, the parts of the C library stay shared; {fmt}, of which Debian has no
# archive, is compiled in.
function(trainprof_static target)
  if(NOT TRAINPROF_STATIC OR NOT TARGET ${target})
    return()
  endif()
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  if(libraries)
    list(FILTER libraries EXCLUDE REGEX "/lib(c|m|dl|rt|pthread)\\.a$")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
  endif()
  get_target_property(type ${target} TYPE)
  if(target STREQUAL "fmt::fmt" AND type STREQUAL "SHARED_LIBRARY")
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  endif()
endfunction()
