#!/usr/bin/env bash
# From a clone to a verdict: installs what is missing, builds trainprof, its timeline and the reference
# trainer, profiles two real trainings, without and with loader workers, says what slowed each down, and
# makes a picture of the first verdict.
#
#   scripts/quickstart.sh [--no-install] [--steps N]
#
#   --no-install  install nothing; say what is missing instead
#   --steps N     training steps of each of the two runs (default 40)
#
# The programs stay in build/release/bin, the recordings and the picture in build/quickstart, the noise in
# build/quickstart.log. Where the timeline's packages cannot be had, all the rest is done. Run it again as often as you like: what is there is reused.
# Exit codes: 0 done, 1 something is missing or failed (it says what), 2 usage error.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
source scripts/steps.sh

readonly bin=build/release/bin
readonly recordings=build/quickstart
log=build/quickstart.log
may_install=true
steps=40

usage() { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --no-install) may_install=false ;;
      --steps) [[ ${2:-} =~ ^[1-9][0-9]{0,5}$ ]] || { usage >&2; exit 2; }; steps=$2; shift ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
    shift
  done
}

packages() {
  local check=()
  $may_install || check=(--check)
  scripts/install_packages.sh "${check[@]}" build trainer --optional viewer fast
}

# Its last line on stdout is the prefix; what it found, and why, stands in the log.
libtorch() {
  if $may_install; then scripts/find_libtorch.sh --install; else scripts/find_libtorch.sh; fi
}

has_nvtx() { "$bin/instrumented_trainer" --help | grep -q 'NVTX ranges: built in'; }

# trains WORKERS: one recorded training, in a folder of its own. `run` never overwrites: ours is
# removed first.
trains() {
  rm -rf "${recordings:?}/workers$1"
  mkdir -p "$recordings"
  "$bin/trainprof" run --output "$recordings/workers$1" -- \
    "$bin/instrumented_trainer" --device cpu --model resnet --workers "$1" --steps "$steps" \
    --data "$recordings/data" 2>&1 | tee "$recordings/workers$1.txt"
}

# The training is a real one: its loss falls.
show_losses() {
  awk '/^step [0-9]+ loss / { if (first == "") first = $4; last = $4; step = $2 }
       END { if (first != "") printf "   loss %s at step 1, %s at step %d\n", first, last, step }' \
    "$recordings/workers$1.txt"
}

analyze() {
  "$bin/trainprof" analyze "$recordings/workers$1" --format text \
    --format "json=$recordings/workers$1.json" --format "html=$recordings/workers$1.html"
}

# Reads the two JSON reports: the wait of each, and whether each account is whole.
compare() {
  python3 - "$recordings/workers0.json" "$recordings/workers2.json" <<'PYTHON'
import json
import sys


def rank_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["ranks"][0]


waits = []
for workers, path in zip((0, 2), sys.argv[1:]):
    rank = rank_of(path)
    account = {row["class"]: row["ms_per_step"] for row in rank["host_account"]}
    mean = rank["steps"]["mean_ms"]
    waits.append(account.get("input_wait", 0.0))
    whole = sum(row["total_ns"] for row in rank["host_account"]) == rank["steps"]["window_ns"]
    print(f"  --workers {workers}: {waits[-1]:7.2f} ms/step of {mean:7.2f} ms/step waiting for input"
          f" ({rank['steps']['count']} steps; the account adds up to the ns: {'yes' if whole else 'NO'})")
    if not whole:
        sys.exit("the time account does not add up to the steps' time")
saved = waits[0] - waits[1]
print(f"  The input wait {'shrank' if saved > 0 else 'grew'} by {abs(saved):.2f} ms/step.")
PYTHON
}

# The first finding's evidence; where there is none, the whole run.
draw() {
  local picture=$1
  rm -f "$picture"
  "$bin/trainprof" view "$recordings/workers0" --finding 1 --screenshot "$picture" ||
    "$bin/trainprof" view "$recordings/workers0" --screenshot "$picture"
}

# What a person does next: look.
show_timeline() {
  local picture=$recordings/verdict.png
  say
  if [[ ! -x $bin/trainprof-viewer ]]; then
    say "The timeline was not built: scripts/install_packages.sh viewer, then start again."
    return 0
  fi
  say "== The first verdict as a timeline"
  if step "Drawing it" draw "$picture"; then say "  Picture:      $picture"; fi
  say "  Open it with: $bin/trainprof view $recordings/workers0"
}

show_page() {
  say
  say "== The first verdict as a page, for any browser"
  say "  $recordings/workers0.html"
}

# A folder that was configured before keeps what it has.
configure() {
  local options=(-DBUILD_TESTING=OFF)
  [[ -e build/release/CMakeCache.txt ]] || options+=(-DTRAINPROF_UNITY=ON)
  cmake --preset release "${options[@]}"
}

main() {
  parse "$@"
  rm -f "$log"
  say "trainprof quickstart: packages, LibTorch, build, two profiled trainings. Log: $log"
  step "Looking for packages" packages || exit 1
  step "Looking for LibTorch" libtorch || exit 1
  grep -h '^find_libtorch: taken' "$log" | sed 's/^find_libtorch: /   /' || true
  step "Configuring preset release in build/release" configure || exit 1
  step "Building trainprof, its timeline and the reference trainer" \
    cmake --build --preset release --parallel "$(parallel_jobs)" || exit 1
  if ! has_nvtx; then
    say "The trainer was built without NVTX ranges, so trainprof would see no steps. Get the headers:"
    say "  python3 -m venv .venv && .venv/bin/pip install nvidia-nvtx     (or install the CUDA toolkit)"
    say "then start again."
    exit 1
  fi
  step "Training $steps steps with --workers 0, recorded (the first run draws the data set)" trains 0 || exit 1
  show_losses 0
  step "Training $steps steps with --workers 2, recorded" trains 2 || exit 1
  show_losses 2
  local workers
  for workers in 0 2; do
    say
    say "== trainprof analyze $recordings/workers$workers     (trained with --workers $workers)"
    analyze "$workers" || exit 1
  done
  say
  say "== Both together"
  compare || exit 1
  show_timeline
  show_page
  say
  say "Now your own program:  $bin/trainprof run -- python train.py"
}

main "$@"
