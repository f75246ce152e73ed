# Every third-party library, found once, with an error that names the Debian package to install.

# trainprof_need(<package> <debian-package> [find_package arguments...])
macro(trainprof_need package debian_package)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "trainprof needs ${package}. Install it: apt-get install ${debian_package}")
  endif()
endmacro()

# An optional part that was not found: an error where TRAINPROF_REQUIRE_ALL asks for everything.
function(trainprof_absent what how_to_get_it)
  if(TRAINPROF_REQUIRE_ALL)
    message(FATAL_ERROR "${what} not found, and TRAINPROF_REQUIRE_ALL is on. ${how_to_get_it}")
  endif()
  message(STATUS "${what} not found; left out. ${how_to_get_it}")
endfunction()

include(static)
find_package(Threads REQUIRED)
trainprof_need(CLI11 libcli11-dev)
trainprof_need(nlohmann_json nlohmann-json3-dev)
trainprof_need(fmt libfmt-dev)
trainprof_static(fmt::fmt)
trainprof_need(ZLIB zlib1g-dev)

find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "trainprof needs pkg-config. Install it: apt-get install pkg-config")
endif()
pkg_check_modules(ZSTD QUIET IMPORTED_TARGET libzstd)
if(NOT ZSTD_FOUND)
  message(FATAL_ERROR "trainprof needs libzstd. Install it: apt-get install libzstd-dev")
endif()
trainprof_static(PkgConfig::ZSTD)

# Policies; by its header alone, so that no library has to be there when the program runs.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE)
  message(FATAL_ERROR "trainprof needs toml++. Install it: apt-get install libtomlplusplus-dev")
endif()
add_library(trainprof_toml INTERFACE)
target_include_directories(trainprof_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
target_compile_definitions(trainprof_toml INTERFACE TOML_HEADER_ONLY=1)

# Lines of native stacks; without it they name functions only.
pkg_check_modules(LIBDW QUIET IMPORTED_TARGET libdw)
if(NOT LIBDW_FOUND)
  trainprof_absent("libdw (file and line of native stacks)" "Install it: apt-get install libdw-dev")
endif()
trainprof_static(PkgConfig::LIBDW)

# Gzip several times as fast; without it zlib's.
pkg_check_modules(ISAL QUIET IMPORTED_TARGET libisal)
if(NOT ISAL_FOUND)
  trainprof_absent("isa-l (fast gzip)" "Install it: apt-get install libisal-dev (scripts/install_packages.sh fast)")
endif()
trainprof_static(PkgConfig::ISAL)

if(BUILD_TESTING)
  trainprof_need(GTest libgtest-dev)
  trainprof_need(benchmark libbenchmark-dev)
  include(GoogleTest)
endif()
