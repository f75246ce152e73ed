#!/usr/bin/env bash
# Prints, on stdout, the CMake prefix path of the LibTorch that instrumented_trainer will be built with:
#   cmake -DCMAKE_PREFIX_PATH="$(scripts/find_libtorch.sh)" ...
# Order: CMAKE_PREFIX_PATH, the active Python's torch, the local venv .venv, the system's packages.
# cmake/libtorch.cmake uses the same order, and looks into .venv too, so a plain configure finds the same.
#
# With --install it gets one where none is found (and the headers of NVTX, CUDA and CUPTI, where absent):
#   1. torch==2.13.0+cpu from pip into .venv. "+cpu" is on purpose: on x86-64 the plain torch of the
#      public index is the CUDA build, several GB with its nvidia-* packages; without those packages it
#      neither links nor loads, because libtorch.so needs libtorch_cuda.so and that needs cuBLAS and cuDNN.
#      CPU builds are on the CPU index that PyTorch's install page names: put its address into
#      PIP_EXTRA_INDEX_URL. Where no configured index has one, pip fails within seconds.
#   2. Debian's libtorch-dev (1.13.1, a download of 32 MB and its dependencies), when root.
# --headers gets those headers alone.
# Exit codes: 0 found, 1 not found (stderr says what to do), 2 usage error.
set -euo pipefail

readonly torch_version="2.13.0"
readonly cuda_headers="nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-cupti==13.0.*"  # as tested
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root
readonly venv="$root/.venv"

say() { echo "find_libtorch: $*" >&2; }

usage() {
  echo "usage: scripts/find_libtorch.sh [--install | --headers]"
  echo "Prints the CMake prefix path of LibTorch; --install gets LibTorch and the headers of NVTX, CUDA and CUPTI where absent, --headers these alone."
}

# A CUDA build of torch configures only where the CUDA toolkit is.
python_prefix() {
  "$1" - 2>/dev/null <<'PYTHON'
import os, shutil, sys
import torch
if torch.version.cuda and not (shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc")):
    sys.exit(1)
print(torch.utils.cmake_prefix_path)
PYTHON
}

from_environment() {
  local prefix suffix
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    for suffix in "" /share/cmake /lib/cmake "/lib/$(uname -m)-linux-gnu/cmake"; do
      if [[ -n $prefix && -e $prefix$suffix/Torch/TorchConfig.cmake ]]; then
        echo "$prefix$suffix"
        return 0
      fi
    done
  done
  return 1
}

from_system() {
  local folder
  for folder in "/usr/lib/$(uname -m)-linux-gnu/cmake" /usr/lib/cmake /usr/local/lib/cmake /usr/local/share/cmake; do
    if [[ -e $folder/Torch/TorchConfig.cmake ]]; then
      echo "$folder"
      return 0
    fi
  done
  return 1
}

find_it() {
  local found
  if found=$(from_environment); then
    say "taken from CMAKE_PREFIX_PATH: $found"
  elif command -v python3 >/dev/null && found=$(python_prefix python3); then
    say "taken from the active Python, $(command -v python3): $found"
  elif [[ -x $venv/bin/python ]] && found=$(python_prefix "$venv/bin/python"); then
    say "taken from the local venv: $found"
  elif found=$(from_system); then
    say "taken from the system's packages: $found"
  else
    return 1
  fi
  echo "$found"
}

install_packages() {
  if [[ $(id -u) -ne 0 ]]; then
    say "not root, so not installed: $*. Run: sudo apt-get install $*"
    return 1
  fi
  command -v apt-get >/dev/null || { say "no apt-get here; install $* by hand"; return 1; }
  say "installing $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
    { apt-get update >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2; }
}

make_venv() {
  if [[ -x $venv/bin/pip ]]; then return 0; fi
  if python3 -m venv "$venv" >/dev/null 2>&1 && [[ -x $venv/bin/pip ]]; then return 0; fi
  rm -rf "$venv"
  install_packages python3-venv && python3 -m venv "$venv" >&2
}

pip_install() { "$venv/bin/pip" install --quiet --retries 1 "$@" >&2; }

have_header() {
  compgen -G "/usr/local/cuda*/include/$1" >/dev/null ||
    compgen -G "/usr/local/cuda*/extras/CUPTI/include/$1" >/dev/null ||
    compgen -G "$venv/lib/python3*/site-packages/nvidia/*/include/$1" >/dev/null ||
    [[ -e /usr/include/$1 ]]
}

# Headers alone are used, of NVTX and CUPTI: nothing of CUDA is linked.
install_headers() {
  if ! have_header nvtx3/nvToolsExt.h; then
    say "installing the NVTX headers (nvidia-nvtx, a small package) into .venv"
    if ! { make_venv && pip_install nvidia-nvtx; }; then
      say "no NVTX headers: the trainer will have no ranges, and its steps will not be seen. Get them with"
      say "  python3 -m venv .venv && .venv/bin/pip install nvidia-nvtx     or install the CUDA toolkit"
    fi
  fi
  if ! { have_header cupti.h && have_header cuda.h; }; then
    say "installing the CUDA and CUPTI headers ($cuda_headers; 60 MB) into .venv"
    # shellcheck disable=SC2086  # three packages
    if ! { make_venv && pip_install $cuda_headers; }; then
      say "no CUPTI headers: GPU recording will not be built. Get them with"
      say "  python3 -m venv .venv && .venv/bin/pip install $cuda_headers     or install the CUDA toolkit"
    fi
  fi
}

install_it() {
  if make_venv; then
    say "installing torch==$torch_version+cpu into .venv"
    if pip_install "torch==$torch_version+cpu" && find_it; then return 0; fi
    say "no CPU build of torch $torch_version could be installed; taking the distribution's LibTorch"
  fi
  install_packages libtorch-dev && find_it
}

explain() {
  cat >&2 <<TEXT
find_libtorch: no LibTorch found. Any one of these gives one:
  sudo apt-get install libtorch-dev                      (LibTorch 1.13, Debian and Ubuntu)
  PIP_EXTRA_INDEX_URL=<CPU index named on PyTorch's install page> scripts/find_libtorch.sh --install
  export CMAKE_PREFIX_PATH=<folder of an unpacked LibTorch>
Everything except instrumented_trainer builds and tests without it.
TEXT
}

main() {
  local install=false
  case "${1:-}" in
    "") ;;
    --install) install=true ;;
    --headers) install_headers; have_header nvtx3/nvToolsExt.h && have_header cupti.h && have_header cuda.h; return ;;
    -h | --help) usage; return 0 ;;
    *) usage >&2; return 2 ;;
  esac
  if $install; then install_headers; fi
  if find_it; then return 0; fi
  if $install && install_it; then return 0; fi
  explain
  return 1
}

main "$@"
