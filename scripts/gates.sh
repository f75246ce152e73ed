#!/usr/bin/env bash
# Runs the benchmarks whose gates the project promises, and says which hold: ratios against a peer or limit in the
# same run. For a machine that does nothing else meanwhile.
#
#   scripts/gates.sh [--corpus FOLDER] [--no-build] [NAME...]
#
#   --corpus FOLDER  real traces, for those that need them; else TRAINPROF_CORPUS. Without, they are skipped.
#   --no-build       build/release is there already; else it is configured and its benchmarks are built.
#   NAME             these alone: export import analysis kineto report nvtx cupti read cancel open frame ui python
#
# Exit codes: 0 all that ran hold, 1 one does not, or ended with an error, 2 usage error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly all=(export import analysis kineto report nvtx cupti read cancel open frame ui python)
readonly bin=build/release/bin

usage() { sed -n '2,11s/^# \{0,1\}//p' scripts/gates.sh; }

build=1
names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --corpus) [[ $# -ge 2 ]] || { usage >&2; exit 2; }; export TRAINPROF_CORPUS=$2; shift ;;
    --no-build) build=0 ;;
    -*) usage >&2; exit 2 ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || { echo "gates.sh: no benchmark '$1': ${all[*]}" >&2; exit 2; }
      names+=("$1") ;;
  esac
  shift
done
[[ ${#names[@]} -gt 0 ]] || names=("${all[@]}")

if [[ $build -eq 1 ]]; then
  [[ -e build/release/CMakeCache.txt ]] || cmake --preset release -DTRAINPROF_LIBTORCH=OFF
  cmake --build build/release --parallel "$(nproc)"  # all: `run` needs the injected library and the Python hooks
  cmake --build build/release --parallel "$(nproc)" --target benchmarks
fi

# The command of a benchmark, in `command`; false, and why in `reason`: not here.
command_of() {
  reason=""
  case $1 in
    export) command=("$bin/chrome_export_benchmark") ;;
    import) command=("$bin/json_import_benchmark") ;;
    analysis) command=("$bin/analysis_benchmark" 10) ;;
    kineto) command=("$bin/analysis_benchmark" kineto) ;;
    report)
      command=(python3 tests/benchmarks/report_benchmark.py "$bin/trainprof")
      [[ ! -x .venv-hta/bin/python ]] || command+=(--hta .venv-hta/bin/python)
      ! command -v tracy-import-chrome >/dev/null || command+=(--tracy tracy-import-chrome)
      ! command -v trace_processor_shell >/dev/null || command+=(--perfetto trace_processor_shell) ;;
    nvtx) command=("$bin/nvtx_overhead_benchmark") ;;
    cupti) command=("$bin/cupti_overhead_benchmark") ;;
    read) command=("$bin/recording_read_benchmark") ;;
    cancel) command=("$bin/cancel_benchmark") ;;
    open) command=("$bin/viewer_open_benchmark") ;;
    frame) command=("$bin/viewer_frame_benchmark") ;;
    ui) command=("$bin/viewer_ui_benchmark") ;;
    python) command=(python3 tests/benchmarks/python_overhead_benchmark.py "$PWD/$bin/trainprof" "$PWD/.venv/bin/python") ;;
  esac
  case $1 in
    export | kineto | report)
      [[ -n ${TRAINPROF_CORPUS:-} && -d $TRAINPROF_CORPUS ]] || { reason="no corpus: --corpus FOLDER"; return 1; } ;;
    python)
      .venv/bin/python -c 'import torch' 2>/dev/null || { reason="no .venv with torch: scripts/find_libtorch.sh --install"; return 1; } ;;
  esac
  [[ ${command[0]} == python3 || -x ${command[0]} ]] || { reason="${command[0]} is not built here"; return 1; }
}

echo "load before: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
summary=()
status=0
for name in "${names[@]}"; do
  if ! command_of "$name"; then
    summary+=("$(printf '%-9s skipped: %s' "$name" "$reason")")
    continue
  fi
  echo "== $name: ${command[*]}"
  started=$SECONDS
  if "${command[@]}"; then verdict=holds; else verdict=FAILS; status=1; fi
  summary+=("$(printf '%-9s %s (%d s)' "$name" "$verdict" $((SECONDS - started)))")
done
echo "== gates, load after: $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%s\n' "${summary[@]}"
exit "$status"
