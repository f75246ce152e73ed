#!/usr/bin/env bash
# Fuzzes the trace importer and exporter with libFuzzer, under the address and undefined-behaviour
# sanitizers, starting from the seeds and from what earlier runs found.
#
#   scripts/fuzz.sh [SECONDS] [LIBFUZZER ARGUMENTS...]      60 seconds by default
#
# Needs clang with its runtime (Debian: clang libclang-rt-dev). Builds in build/fuzz, or in the folder
# that TRAINPROF_FUZZ_FOLDER names; inputs that reach new code are kept there in corpus/, an input that
# fails in crash-*. The last line says how many inputs ran, in how long. Exit codes: 0 nothing found,
# 1 an input failed, the time was not kept, or the build failed, 2 usage error, 3 no clang with
# libFuzzer here.
# shellcheck disable=SC2317,SC1091,SC2034  # `step` calls the functions and reads `log`
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
source scripts/steps.sh

readonly folder=${TRAINPROF_FUZZ_FOLDER:-build/fuzz}
readonly default_seconds=60
readonly input_timeout_s=20    # an input that takes longer is a finding
readonly memory_limit_mb=2048  # and so is one that takes more
readonly longest_input=4096    # bytes; small inputs run fast

usage() { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# Prints the first clang++ that links a fuzz target.
find_clang() {
  local clang probe
  probe=$(mktemp -d)
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' >"$probe/a.cpp"
  for clang in "${CXX:-}" clang++ clang++-{21..14}; do
    command -v "${clang:-none}" >/dev/null || continue
    if "$clang" -fsanitize=fuzzer,address "$probe/a.cpp" -o "$probe/a" 2>/dev/null; then
      command -v "$clang"
      rm -r "$probe"
      return 0
    fi
  done
  rm -r "$probe"
  return 1
}

configure() {
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTRAINPROF_LIBTORCH=OFF \
    -DTRAINPROF_UNITY=ON \
    -DCMAKE_CXX_COMPILER="$1" -DCMAKE_C_COMPILER="${1/clang++/clang}" \
    -DTRAINPROF_SANITIZE=fuzzer-no-link,address,undefined
}

# Prints how much ran; fails when libFuzzer ended before its time.
report() {
  local executions took
  read -r executions took < <(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 \2/p' "$1") || true
  if [[ -z ${took:-} || $took -lt $2 ]]; then
    tail -n 10 "$1"
    say "Fuzzing ended after ${took:-?} s, before the $2 s that were asked for"
    return 1
  fi
  say "Fuzzed for $took s: $executions inputs, nothing found"
}

main() {
  local seconds=$default_seconds clang output status=0
  case ${1:-} in
    -h | --help) usage; exit 0 ;;
    "") ;;
    *[!0-9]*) usage >&2; exit 2 ;;
    *) seconds=$1; shift ;;
  esac
  log=$folder/fuzz-build.log
  clang=$(find_clang) || {
    echo "fuzz.sh: no clang with libFuzzer: scripts/install_packages.sh fuzz" >&2
    exit 3
  }
  mkdir -p "$folder/corpus"
  step "Configuring with $clang in $folder" configure "$clang" || exit 1
  step "Building" cmake --build "$folder" --parallel "$(parallel_jobs)" --target kineto_fuzz || exit 1
  output=$folder/fuzz.log
  say "-- Fuzzing for $seconds s; its output is in $output"
  "$folder/bin/kineto_fuzz" "$folder/corpus" tests/fuzz/seeds/kineto -dict=tests/fuzz/kineto.dict \
    -max_total_time="$seconds" -max_len="$longest_input" -timeout="$input_timeout_s" \
    -rss_limit_mb="$memory_limit_mb" -print_final_stats=1 -artifact_prefix="$folder/" "$@" \
    >"$output" 2>&1 </dev/null || status=1
  if [[ $status -ne 0 ]]; then
    tail -n 40 "$output"
    say "An input failed. Again: $folder/bin/kineto_fuzz $folder/crash-... (or timeout-, oom-, leak-)"
    exit 1
  fi
  report "$output" "$seconds"
}

main "$@"
