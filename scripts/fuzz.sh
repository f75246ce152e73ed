#!/usr/bin/env bash
# Fuzzes the trace importer and exporter with libFuzzer, under the address and undefined-behaviour
# sanitizers, starting from the seeds and from what earlier runs found.
#
#   scripts/fuzz.sh [SECONDS] [LIBFUZZER ARGUMENTS...]      60 seconds by default
#
# Needs clang with its runtime (Debian: clang libclang-rt-dev). Builds in build/fuzz, or in the folder
# that TRAINPROF_FUZZ_FOLDER names, which may be one of preset asan, configured with clang. A process for
# each core shares the inputs that reach new code: they are kept there in corpus/, an input that fails in
# crash-*. The last line says how many inputs ran, in how long. Exit codes: 0 nothing found,
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
  ! grep -qs '^TRAINPROF_FUZZ:BOOL=ON' "$folder/CMakeCache.txt" || return 0
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTRAINPROF_LIBTORCH=OFF \
    -DTRAINPROF_UNITY=ON \
    -DCMAKE_CXX_COMPILER="$1" -DCMAKE_C_COMPILER="${1/clang++/clang}" \
    -DTRAINPROF_SANITIZE=address,undefined -DTRAINPROF_FUZZ=ON
}

# report SECONDS LOG...: prints how much ran; fails when a process ended before its time.
report() {
  local inputs=0 log executions took
  for log in "${@:2}"; do
    read -r executions took < <(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 \2/p' "$log") || true
    if [[ -z ${took:-} || $took -lt $1 ]]; then
      tail -n 10 "$log"
      say "Fuzzing ended after ${took:-?} s, before the $1 s that were asked for"
      return 1
    fi
    inputs=$((inputs + executions))
  done
  say "Fuzzed for $1 s: $inputs inputs, nothing found"
}

main() {
  local seconds=$default_seconds clang processes logs=() pids=() i status=0
  case ${1:-} in
    -h | --help) usage; exit 0 ;;
    "") ;;
    *[!0-9]*) usage >&2; exit 2 ;;
    *) seconds=$1; shift ;;
  esac
  log=$folder/build-fuzz.log
  clang=$(find_clang) || {
    echo "fuzz.sh: no clang with libFuzzer: scripts/install_packages.sh fuzz" >&2
    exit 3
  }
  mkdir -p "$folder/corpus"
  step "Configuring with $clang in $folder" configure "$clang" || exit 1
  step "Building" cmake --build "$folder" --parallel "$(parallel_jobs)" --target kineto_fuzz || exit 1
  processes=$(parallel_jobs)
  say "-- Fuzzing for $seconds s, $processes at once; their output is in $folder/fuzz-*.log"
  rm -f "$folder"/fuzz-*.log
  for ((i = 0; i < processes; ++i)); do
    logs+=("$folder/fuzz-$i.log")
    "$folder/bin/kineto_fuzz" "$folder/corpus" tests/fuzz/seeds/kineto -dict=tests/fuzz/kineto.dict \
      -max_total_time="$seconds" -max_len="$longest_input" -timeout="$input_timeout_s" \
      -rss_limit_mb="$memory_limit_mb" -print_final_stats=1 -artifact_prefix="$folder/" "$@" \
      >"${logs[i]}" 2>&1 </dev/null &
    pids+=($!)
  done
  for ((i = 0; i < processes; ++i)); do
    wait "${pids[i]}" && continue
    tail -n 40 "${logs[i]}"
    status=1
  done
  if [[ $status -ne 0 ]]; then
    say "An input failed. Again: $folder/bin/kineto_fuzz $folder/crash-... (or timeout-, oom-, leak-)"
    exit 1
  fi
  report "$seconds" "${logs[@]}"
}

main "$@"
