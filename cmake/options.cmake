# Build-wide settings: language level, warnings, output folders, sanitizers, where the corpus is.
include(CTest)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

option(TRAINPROF_REQUIRE_ALL "Make an absent optional part (LibTorch, NVTX, ...) an error" OFF)
set(TRAINPROF_TESTS "all" CACHE STRING
    "all, or programs: tests of whole programs and those that sanitizers cannot run, without the unit tests")
set_property(CACHE TRAINPROF_TESTS PROPERTY STRINGS all programs)
set(TRAINPROF_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")

set(_default_corpus "")
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/corpus)
  get_filename_component(_default_corpus ${PROJECT_SOURCE_DIR}/../shared/corpus ABSOLUTE)
endif()
set(TRAINPROF_CORPUS "${_default_corpus}" CACHE PATH
    "Folder of real traces that others recorded; its tests skip where it is absent")

# Warnings, the include root and sanitizers, for every target of ours: link it PRIVATE.
add_library(trainprof_flags INTERFACE)
target_compile_options(trainprof_flags INTERFACE -Wall -Wextra)
# GCC 12 at -O3 takes "r" + std::to_string(i) for an overlapping copy (GCC bug 105651, fixed in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(trainprof_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_include_directories(trainprof_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
if(TRAINPROF_SANITIZE)
  target_compile_options(trainprof_flags INTERFACE -fsanitize=${TRAINPROF_SANITIZE}
                                                   -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # They ask at each access what the address sanitizer sees, too: 12 to 24 % of Clang's time on a room of ours.
  if(TRAINPROF_SANITIZE MATCHES "address.*undefined")
    target_compile_options(trainprof_flags INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  # Where bytes become objects in place: the collectors, and what stands for a driver in tests. Elsewhere bytes are
  # copied, and to ask at each access is another 10 to 25 %. Folders inherit it.
  if(TRAINPROF_SANITIZE MATCHES "undefined")
    define_property(TARGET PROPERTY TRAINPROF_CASTS_BYTES INHERITED BRIEF_DOCS "Objects are made of bytes in place")
    target_compile_options(trainprof_flags INTERFACE
      $<$<NOT:$<BOOL:$<TARGET_PROPERTY:TRAINPROF_CASTS_BYTES>>>:-fno-sanitize=alignment>)
  endif()
  # Halves the build and keeps line numbers in reports. For directories, so that a target may go on.
  add_compile_options(-O1 -g1)
  # A fifth of Clang's time goes into code that it copies into callers, with all that is asked of it there; without
  # the larger half of that the tests take a tenth longer, which is less.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options("SHELL:-mllvm -inline-threshold=20")
  endif()
  # Clang as GCC is: its runtime a library, since what is loaded into a program and what is executed need the same one,
  # and said in the same words.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND TRAINPROF_SANITIZE MATCHES "address")
    target_compile_definitions(trainprof_flags INTERFACE __SANITIZE_ADDRESS__)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE _runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(_runtime ${_runtime} DIRECTORY)
    # Drivers are called through declarations of our own, with other names for the same types.
    target_compile_options(trainprof_flags INTERFACE -fno-sanitize=function)
    # Not libFuzzer's programs (TRAINPROF_STATIC_RUNTIME): its main() does not let a library come first.
    set(_static $<TARGET_PROPERTY:TRAINPROF_STATIC_RUNTIME>)
    target_link_options(trainprof_flags INTERFACE
      $<IF:$<BOOL:${_static}>,-static-libsan,-shared-libsan> -Wl,-rpath,${_runtime})
  endif()
  # Documented to err with sanitizers, and does inside <regex> and <functional>. Clang does not know it.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(trainprof_flags INTERFACE -Wno-maybe-uninitialized)
    # Fences, which it does not model: it may then report what they order.
    if(TRAINPROF_SANITIZE MATCHES "thread")
      target_compile_options(trainprof_flags INTERFACE -Wno-tsan)
    endif()
  endif()
  target_link_options(trainprof_flags INTERFACE -fsanitize=${TRAINPROF_SANITIZE})
endif()
# What libFuzzer needs to see of the importers makes trace/ take about a tenth longer to compile; another build of it
# would take a minute.
set(_can_fuzz OFF)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND TRAINPROF_SANITIZE MATCHES "address")
  set(_can_fuzz ON)
endif()
option(TRAINPROF_FUZZ "Instrument trace/ for libFuzzer, and build the fuzz targets with it (Clang)" ${_can_fuzz})

# Code that runs once a command or once a frame: link it PRIVATE, too. It is optimised less, under sanitizers not
# at all, which takes a third of the compiler's time away and costs its users nothing.
add_library(trainprof_cold_flags INTERFACE)
if(TRAINPROF_SANITIZE)
  target_compile_options(trainprof_cold_flags INTERFACE -O0)
elseif(CMAKE_BUILD_TYPE MATCHES "^Rel")
  target_compile_options(trainprof_cold_flags INTERFACE -O1)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
