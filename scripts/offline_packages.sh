#!/usr/bin/env bash
# The libraries that trainprof and its trainer are built with, carried to a machine that has a compiler
# but no package registry (a GPU node, say), without root.
#
#   scripts/offline_packages.sh fetch FOLDER        on a Debian or Ubuntu with a network: downloads them
#   eval "$(scripts/offline_packages.sh use FOLDER)"  there: unpacks them in FOLDER/root, for this shell
#
# Programs (CMake, g++, Ninja, Python) and the C library are the other machine's own: that should be as
# new as the one that fetched, or newer. Exit codes: 0 done, 1 not, 2 usage error.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# The compiler's and the C library's packages, and what only these need.
readonly everywhere='^(libc6|libc6-dev|libgcc-s1|libstdc\+\+6|libstdc\+\+-.*|gcc-.*|dpkg|debconf)$'

dependencies() {
  apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances "$1" | sed -n 's/^ *|\{0,1\}\(Pre\)\{0,1\}Depends: \([^<]*\)$/\2/p'
}

# The packages and all that they need, each once, one a line.
closure() {
  local queue=("$@") seen=" " package
  while [[ ${#queue[@]} -gt 0 ]]; do
    package=${queue[0]%%:*}
    queue=("${queue[@]:1}")
    if [[ $seen == *" $package "* || $package =~ $everywhere ]]; then continue; fi
    seen+="$package "
    echo "$package"
    mapfile -t -O ${#queue[@]} queue < <(dependencies "$package")
  done
}

fetch() {
  local folder=$1 packages
  command -v apt-get >/dev/null || { echo "offline_packages: needs apt-get, of Debian or Ubuntu" >&2; return 1; }
  # shellcheck disable=SC2046  # one word a package
  mapfile -t packages < <(closure pkgconf-bin $("$root/scripts/install_packages.sh" --list build trainer))
  mkdir -p "$folder"
  (cd "$folder" && apt-get -o APT::Sandbox::User=root download "${packages[@]}") || return 1
  echo "${#packages[@]} packages, $(du -sh "$folder" | cut -f1), in $folder"
}

unpack() {
  local folder=$1 package
  compgen -G "$folder/*.deb" >/dev/null || { echo "offline_packages: no .deb in $folder" >&2; return 1; }
  [[ -e $folder/root/.whole ]] && return
  rm -rf "$folder/root"
  mkdir -p "$folder/root"
  for package in "$folder"/*.deb; do
    if command -v dpkg-deb >/dev/null; then
      dpkg-deb -x "$package" "$folder/root" || return 1
    else
      # An archive of ar, which has the files as one archive of tar.
      (cd "$folder/root" && ar x "$package" && tar xf data.tar.* && rm -f data.tar.* control.tar.* debian-binary) || return 1
    fi
  done
  touch "$folder/root/.whole"
}

# The one program that is carried, for machines without it.
write_pkg_config() {
  local folder=$1 libraries=$2
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/root/usr/bin/pkgconf "$@"\n' "$libraries" "$folder" >"$folder/bin/pkg-config"
  chmod +x "$folder/bin/pkg-config"
  echo "export PATH=\"$folder/bin:\$PATH\""
}

use() {
  local folder triplet
  folder=$(cd "$1" && pwd)
  unpack "$folder" || return 1
  local usr=$folder/root/usr
  triplet=$(basename "$(dirname "$(find "$usr/lib" -maxdepth 2 -name pkgconfig -print -quit)")")
  local libraries=$usr/lib/$triplet:$folder/root/lib/$triplet
  command -v pkg-config >/dev/null || write_pkg_config "$folder" "$libraries"
  cat <<EOF
export CMAKE_PREFIX_PATH="$usr\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}"
export PKG_CONFIG_SYSROOT_DIR="$folder/root"
export PKG_CONFIG_PATH="$usr/lib/$triplet/pkgconfig:$usr/share/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}"
export CPATH="$usr/include:$usr/include/$triplet\${CPATH:+:\$CPATH}"
export LIBRARY_PATH="$libraries\${LIBRARY_PATH:+:\$LIBRARY_PATH}"
export LDFLAGS="-Wl,--disable-new-dtags,-rpath,$usr/lib/$triplet,-rpath,$folder/root/lib/$triplet \${LDFLAGS:-}"
EOF
}

case ${1:-} in
  fetch | use)
    [[ $# -eq 2 ]] || { usage >&2; exit 2; }
    "$1" "$2"
    ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
