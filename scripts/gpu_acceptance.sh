#!/usr/bin/env bash
# Builds trainprof and checks it against a GPU: what is recorded, what it costs, what its findings are
# worth. One table on the terminal; recordings and figures in a folder. No root, no network.
#
#   scripts/gpu_acceptance.sh [--virtual] [--build FOLDER] [--out FOLDER] [--pairs N] [--steps N]
#                              [--only CHECK,...] [--repeat N] [--pause-steps N] [--cupti FILE,...] [--side-by-side]
#
#   --virtual  on the virtual GPU of tests/virtual_gpu instead: nothing is measured then, all is simulated
#   --build    a build folder that holds the programs already; default: builds in build/acceptance
#   --out      a folder that does not exist yet; default results in the build folder, replaced each time
#   --pairs    interleaved runs of each comparison, default 5; 0 compares no times
#   --steps    of each training, default 100
#   --repeat   runs in which the longest kernel is looked for, default 20
#   --pause-steps  of each run that times steps between two samples of GPU detail, default 5000
#   --cupti    files of libcupti that are to be tried as well, as in the wheels of nvidia-cuda-cupti
#   --side-by-side  runs all at once what is not timed, where there are many cores and little time
#   --only     some of facts, start, slots, longest, inside, lines, memory, pause, versions, transparent, complete,
#              others, equality, costs, overhead, habits, kill; they are run in this order
#
# Needs CMake, g++ and the packages of scripts/install_packages.sh build (where there is no registry, see
# scripts/offline_packages.sh); python3 with torch for the Python programs; a CUDA LibTorch (that torch's, or
# CMAKE_PREFIX_PATH) for the C++ trainer. Exit codes: 0 nothing failed, 1 a check failed or the build did,
# 2 usage error, 77 no GPU here.
# shellcheck disable=SC2317,SC1091,SC2034  # `step` calls the functions and reads `log`
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
source scripts/steps.sh

folder=build/acceptance
built=false
mode=gpu
out=
checks=()

usage() { sed -n '2,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --virtual) mode=virtual ;;
      --build) [[ $# -ge 2 ]] || { usage >&2; exit 2; }; folder=$2; built=true; shift ;;
      --out) [[ $# -ge 2 ]] || { usage >&2; exit 2; }; out=$2; shift ;;
      --pairs | --steps | --only | --repeat | --pause-steps | --cupti) [[ $# -ge 2 ]] || { usage >&2; exit 2; }; checks+=("$1" "$2"); shift ;;
      --side-by-side) checks+=("$1") ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
    shift
  done
}

require_gpu() {
  if [[ $mode == gpu ]] && ! compgen -G "/dev/nvidia[0-9]*" >/dev/null; then
    echo "Skipped: no NVIDIA GPU here (/dev/nvidia* is absent); --virtual runs the same checks on the virtual one"
    exit 77
  fi
}

# Only our own default is ever replaced.
choose_output() {
  if [[ -z $out ]]; then
    out=$folder/results
    rm -rf "${out:?}"
  elif [[ -e $out ]]; then
    echo "gpu_acceptance.sh: --out $out exists; name a new folder" >&2
    exit 2
  fi
}

# The trainer wants a CUDA LibTorch; without one the Python programs alone are run.
torch_prefix() {
  python3 -c 'import torch; assert torch.version.cuda; print(torch.utils.cmake_prefix_path)' 2>/dev/null ||
    echo "${CMAKE_PREFIX_PATH:-}"
}

configure() {
  local options=(-DBUILD_TESTING=OFF)
  [[ $mode == virtual ]] && options=(-DBUILD_TESTING=ON -DTRAINPROF_LIBTORCH=OFF)
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_PREFIX_PATH="$(torch_prefix)" "${options[@]}"
}

build() {
  local targets=(trainprof trainprof_injection)
  [[ $mode == virtual ]] && targets+=(training_loop)
  if [[ $mode == gpu ]] && grep -q '^TRAINPROF_LIBTORCH_DIR' "$folder/CMakeCache.txt"; then
    targets+=(instrumented_trainer)
  fi
  cmake --build "$folder" --parallel "$(parallel_jobs)" --target "${targets[@]}"
}

main() {
  parse "$@"
  require_gpu
  choose_output
  mkdir -p "$folder"
  folder=$(realpath "$folder")
  if ! $built; then
    log=$folder/build.log
    rm -f "$log"
    step "Configuring in $folder" configure || exit 1
    step "Building" build || exit 1
  fi
  "${CXX:-c++}" -O2 -std=c++17 -I. tests/acceptance/launches.cpp -o "$folder/bin/launches" -ldl || exit 1
  if [[ $mode == virtual ]]; then
    export LD_LIBRARY_PATH="$folder/lib/virtual_gpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  exec python3 -B scripts/acceptance/main.py --mode "$mode" --trainprof "$folder/bin/trainprof" \
    --binaries "$folder/bin" --out "$out" "${checks[@]}"
}

main "$@"
