#!/usr/bin/env bash
# The one list of Debian packages that trainprof is built and tested with, and their installation.
# quickstart.sh, test.sh and CI all come here.
#
#   scripts/install_packages.sh [--check|--list] GROUP... [--optional GROUP...]
#                                                      GROUPs: build fast trainer viewer test browser lint fuzz
#                                                      wheel peers
#
# Installs what is missing, as root or where sudo asks no password. Otherwise, and with --check, it
# prints the one line to run. Without the groups after --optional it can go on: what is missing there is
# said, and is no failure. --list prints the groups' libraries alone. Exit codes: 0 all there, 1 something
# is missing, 2 usage error.
set -euo pipefail

# A program in PATH counts, wherever it came from; libraries are looked up among Debian's packages.
# "program=package" or "package".
# shellcheck disable=SC2034  # read by name, ${!group}
{
  readonly build="cmake=cmake ninja=ninja-build g++=g++ pkg-config=pkg-config
    libcli11-dev nlohmann-json3-dev libfmt-dev libtomlplusplus-dev libzstd-dev zlib1g-dev libdw-dev"
  # Gzip several times as fast as zlib's; not on every architecture.
  readonly fast="libisal-dev"
  # The trainer's LibTorch and NVTX headers: scripts/find_libtorch.sh --install.
  readonly trainer="libturbojpeg0-dev python3=python3 python3-venv ca-certificates"
  # The timeline: cmake/imgui.cmake. The last two draw where there is no graphics card.
  readonly viewer="libimgui-dev libstb-dev libfreetype-dev libglfw3-dev libgl-dev libegl-dev libpng-dev
    fonts-dejavu-core libegl1 libgl1-mesa-dri"
  readonly test="libgtest-dev libbenchmark-dev libsimdjson-dev python3=python3 python3-jsonschema
    python3-pytest python3-yaml xmllint=libxml2-utils git=git
    Xvfb=xvfb xdotool=xdotool libx11-dev"
  # Opens the report's page; 330 MB.
  readonly browser="chromium=chromium"
  readonly lint="clang-format-14=clang-format-14"
  # What Debian's archives of libdw need, and what a wheel is made with: scripts/build_wheel.sh.
  readonly wheel="libbz2-dev liblzma-dev libglfw3 python3=python3 python3-venv ca-certificates"
  # Whatever version the Debian has; scripts/fuzz.sh also takes a clang++-14 or later from elsewhere.
  readonly fuzz="clang++=clang libclang-rt-dev"
  # What the benchmarks compare with, beyond the libraries of the tests.
  readonly peers="liblttng-ust-dev lttng=lttng-tools"
}

readonly oldest_cmake="3.25"

say() { echo "install_packages: $*" >&2; }

usage() { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Prints the packages of the given "program=package" words that are missing.
missing_of() {
  local word
  for word in "$@"; do
    if [[ $word == *=* ]] && command -v "${word%%=*}" >/dev/null; then continue; fi
    if command -v dpkg-query >/dev/null; then
      is_installed "${word##*=}" || echo "${word##*=}"
    elif [[ $word == *=* ]]; then
      echo "${word##*=}"
    fi
  done | sort -u
}

check_cmake_version() {
  command -v cmake >/dev/null || return 0
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  if [[ $(printf '%s\n' "$oldest_cmake" "$version" | sort -V | head -1) != "$oldest_cmake" ]]; then
    say "CMake $version is too old, $oldest_cmake is needed: apt-get install cmake, or pip install cmake"
    return 1
  fi
}

can_install() {
  command -v apt-get >/dev/null || return 1
  [[ $(id -u) -eq 0 ]] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

apt() {
  local prefix=()
  [[ $(id -u) -eq 0 ]] || prefix=(sudo -n)
  "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

install() {
  can_install || return 1
  say "installing: $*"
  apt install -y --no-install-recommends "$@" ||
    { apt update && apt install -y --no-install-recommends "$@"; }
}

# What this Debian does not have must not keep the others out. Whatever else failed would fail again.
install_what_can_be() {
  install "$@" && return 0
  can_install || return 1
  local package known=()
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then known+=("$package"); fi
  done
  if [[ ${#known[@]} -gt 0 && ${#known[@]} -lt $# ]]; then
    apt install -y --no-install-recommends "${known[@]}"
  fi
  return 1
}

main() {
  local check=false list=false group required=() optional=() words=required
  for group in "$@"; do
    case $group in
      --check) check=true ;;
      --list) list=true ;;
      --optional) words=optional ;;
      -h | --help) usage; return 0 ;;
      build | fast | trainer | viewer | test | browser | lint | fuzz | wheel | peers)
        if [[ $words == required ]]; then
          read -ra required -d '' <<<"${required[*]} ${!group}" || true
        else
          read -ra optional -d '' <<<"${optional[*]} ${!group}" || true
        fi ;;
      *) usage >&2; return 2 ;;
    esac
  done
  if [[ ${#required[@]} -eq 0 ]]; then usage >&2; return 2; fi

  if $list; then
    for group in "${required[@]}" "${optional[@]}"; do
      [[ $group == *=* || $group != *-dev ]] || echo "$group"
    done
    return 0
  fi
  local missing
  read -ra missing -d '' <<<"$(missing_of "${required[@]}" "${optional[@]}")" || true
  if [[ ${#missing[@]} -gt 0 ]] && { $check || ! install_what_can_be "${missing[@]}" >&2; }; then
    read -ra missing -d '' <<<"$(missing_of "${required[@]}" "${optional[@]}")" || true
    say "missing; run this, then start again:"
    echo "  sudo apt-get install -y ${missing[*]}" >&2
    [[ -z $(missing_of "${required[@]}") ]] || return 1
    say "going on without them: they are for optional parts"
  fi
  check_cmake_version
  command -v dpkg-query >/dev/null ||
    say "not a Debian system, so libraries were not checked: ${required[*]} ${optional[*]}"
}

main "$@"
