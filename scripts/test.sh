#!/usr/bin/env bash
# From a clone to tested: installs what is missing, configures, builds and runs all tests; the last line is
# ctest's own verdict.
#
#   scripts/test.sh [--preset NAME] [--no-install] [CTEST ARGUMENTS...]
#
#   --preset NAME  dev (default), release, asan, tsan, ci; or TRAINPROF_PRESET in the environment.
#                  ci: an absent optional part is an error, and so is a test that was skipped although
#                  this machine could have run it. asan, tsan: without LibTorch, which has neither.
#   --no-install   install nothing; stop with the one line to run where something is missing
#
# Packages are installed as root, or where sudo asks no password; elsewhere it stops with that line, too.
# Further arguments go to ctest, e.g. -R StringTable. Exit codes: 0 all passed, 1 not, 2 usage error.
# shellcheck disable=SC2317  # `step` calls the functions
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
source scripts/steps.sh

usage() { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

preset=${TRAINPROF_PRESET:-dev}
may_install=true
ctest_arguments=()

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --preset) [[ $# -ge 2 ]] || { usage >&2; exit 2; }; preset=$2; shift ;;
      --preset=*) preset=${1#*=} ;;
      --no-install) may_install=false ;;
      --install) may_install=true ;;  # as it is anyway; earlier versions asked for it
      -h | --help) usage; exit 0 ;;
      *) ctest_arguments+=("$1") ;;
    esac
    shift
  done
  case $preset in
    dev | release | asan | tsan | ci) ;;
    *) echo "test.sh: no preset '$preset': dev, release, asan, tsan or ci" >&2; exit 2 ;;
  esac
}

# The viewer's and the trainer's parts are optional, except in ci; the sanitizers go without LibTorch.
packages() {
  local check=() install=(--install) groups=(build test --optional viewer trainer fast)
  $may_install || { check=(--check); install=(); }
  case $preset in
    asan | tsan) groups=(build test --optional viewer fast) ;;
    ci) groups=(build fast test viewer trainer lint --optional browser) ;;
  esac
  scripts/install_packages.sh "${check[@]}" "${groups[@]}" || return 1
  case $preset in asan | tsan) return 0 ;; esac
  scripts/find_libtorch.sh "${install[@]}" || [[ $preset != ci ]]
}

# A folder that was configured before keeps what it has.
configure() {
  local options=()
  case $preset in asan | tsan) options=(-DTRAINPROF_LIBTORCH=OFF) ;; esac
  [[ -e build/$preset/CMakeCache.txt ]] || options+=(-DTRAINPROF_UNITY=ON)
  cmake --preset "$preset" "${options[@]}"
}

# Shows ctest's output as it comes and keeps its verdict. The skips of a part of the tests say
# nothing, and neither do those of a run that failed. Two more at once than there are cores: many wait.
run_tests() {
  local output=build/$preset/ctest_output.txt status=0
  ctest --preset "$preset" --parallel $(($(nproc) + 2)) "${ctest_arguments[@]}" 2>&1 </dev/null | tee "$output" || status=1
  verdict=$(grep -E '^[0-9]+% tests passed' "$output" || echo "ctest ended without a verdict")
  if [[ $status -eq 0 && $preset == ci && ${#ctest_arguments[@]} -eq 0 ]]; then
    cmake --build --preset ci-skips || status=1
    [[ $status -eq 0 ]] || verdict="tests were skipped that this machine could have run ($verdict)"
  fi
  return "$status"
}

main() {
  parse "$@"
  log=build/test-$preset.log
  rm -f "$log"
  step "Looking for packages and LibTorch" packages || exit 1
  step "Configuring preset $preset in build/$preset" configure || exit 1
  step "Building" cmake --build --preset "$preset" --parallel "$(parallel_jobs)" || exit 1
  local status=0
  run_tests || status=1
  say "$verdict"
  exit "$status"
}

main "$@"
