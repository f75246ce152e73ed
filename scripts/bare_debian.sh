#!/usr/bin/env bash
# Does what a stranger does: the README's two commands, each in a bare Debian of its own that has git and
# nothing else. Prints how each ended and how long it took.
#
#   scripts/bare_debian.sh [--suite NAME] [--mirror URL] [--bind FOLDER] [--only quickstart|test] [--keep]
#   scripts/bare_debian.sh --wheel FILE [...]
#
#   --suite   Debian's release, default bookworm
#   --mirror  where its packages come from, default what debootstrap takes
#   --bind    a folder of this machine that is seen in there as well, e.g. one that pip.conf names; repeatable
#   --wheel   instead of the two: installs this wheel (scripts/build_wheel.sh) where Python is and no compiler, and
#             uses it (scripts/try_wheel.sh), without OpenGL and with it. A bound folder with torch is trained with
#   --keep    leave the roots in build/bare for a look; else they are removed
#
# What is committed is tried (HEAD), not the work tree. Needs root, mmdebstrap or debootstrap, 10 GB in build/ and
# a registry; pip's settings, certificates and name servers of this machine hold in there. Nothing is mounted or
# left running once it ends. Exit codes: 0 both did what they promise, 1 not, 2 usage error, 3 not possible here.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"

suite=bookworm
mirror=()
binds=()
commands=(quickstart test)
wheel=
keep=false
readonly bare=$root/build/bare
rows=()
failed=0

say() { printf '%s\n' "$*"; }

usage() { sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --suite | --mirror | --bind | --only | --wheel) [[ $# -ge 2 ]] || { usage >&2; exit 2; } ;;&
      --suite) suite=$2; shift ;;
      --mirror) mirror=("$2"); shift ;;
      --bind) [[ -d $2 ]] || { say "bare_debian.sh: $2 is not a folder" >&2; exit 2; }; binds+=("$2"); shift ;;
      --only) [[ $2 == quickstart || $2 == test ]] || { usage >&2; exit 2; }; commands=("$2"); shift ;;
      --wheel) [[ -f $2 ]] || { say "bare_debian.sh: $2 is not a file" >&2; exit 2; }; wheel=$2; commands=(wheel); shift ;;
      --keep) keep=true ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
    shift
  done
}

# make_root FOLDER PACKAGES
make_root() {
  if command -v mmdebstrap >/dev/null; then
    mmdebstrap --variant=minbase --include="$2" "$suite" "$1" "${mirror[@]}"
  else
    debootstrap --variant=minbase --include="$2" "$suite" "$1" "${mirror[@]}"
  fi
}

# This machine's way to the registries.
prepare() {
  cp -L /etc/resolv.conf "$1/etc/resolv.conf"
  if [[ -e /etc/pip.conf ]]; then cp -L /etc/pip.conf "$1/etc/pip.conf"; fi
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
    mkdir -p "$1/etc/ssl/certs"
    cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
  fi
}

# inside ROOT COMMAND...: as root, in its clone, with mounts that end with the command.
inside() {
  local where=$1
  shift
  # shellcheck disable=SC2016  # expanded inside
  WHERE=$where unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$WHERE/proc"
    mount --rbind /dev "$WHERE/dev"
    mount --rbind /sys "$WHERE/sys"
    while [[ $1 != -- ]]; do
      mkdir -p "$WHERE$1"
      mount --bind "$1" "$WHERE$1"
      shift
    done
    shift
    exec chroot "$WHERE" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}" \
      PIP_CERT="${PIP_CERT:-}" PIP_FIND_LINKS="${PIP_FIND_LINKS:-}" PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-}" \
      bash -c "cd /root/trainprof && exec \"\$@\"" bash "$@"' bash "${binds[@]}" -- "$@"
}

# expect NAME LOG WANTED-STATUS STATUS SECONDS PATTERN...: one row of the table; each pattern must be in the log.
expect() {
  local name=$1 log=$2 wanted=$3 status=$4 seconds=$5 verdict=ok pattern
  shift 5
  [[ $status -eq $wanted ]] || verdict="FAILED: exit $status, $wanted expected"
  for pattern in "$@"; do
    grep -qE "$pattern" "$log" || verdict="FAILED: its output lacks '$pattern'"
  done
  [[ $verdict == ok ]] || { failed=1; tail -n 40 "$log" | sed 's/^/   | /'; }
  rows+=("$(printf '%-32s %3d min %02d s   %s' "$name" $((seconds / 60)) $((seconds % 60)) "$verdict")")
}

# try NAME ROOT WANTED-STATUS PATTERNS COMMAND...: runs it, shows it, judges it.
try() {
  local name=$1 where=$2 wanted=$3 patterns log status=0 start=$SECONDS
  IFS=';' read -ra patterns <<<"$4"
  shift 4
  log=$bare/${name//[^a-z]/_}.log
  say "== $name"
  inside "$where" "$@" </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
  expect "$name" "$log" "$wanted" "$status" $((SECONDS - start)) "${patterns[@]}"
}

# Installed without a compiler: first nothing draws, then Mesa does.
try_wheel() {
  local where=$1 torch= folder
  for folder in "${binds[@]}"; do [[ ! -d $folder/torch ]] || torch=$folder; done
  mkdir -p "$where/root/trainprof"
  cp "$wheel" scripts/try_wheel.sh "$where/root/trainprof/"
  local command=(./try_wheel.sh "$(basename "$wheel")" ${torch:+"$torch"})
  try "wheel without OpenGL" "$where" 0 'no compiler here;all of it works;view.*no OpenGL 3.2 to draw with' "${command[@]}"
  say "== Installing Mesa"
  inside "$where" bash -c 'apt-get update && apt-get install -y --no-install-recommends libegl1 libgl1 libgl1-mesa-dri' \
    </dev/null >"$bare/mesa.log" 2>&1 || tail -n 20 "$bare/mesa.log"
  try "wheel with Mesa" "$where" 0 'all of it works;picture: [0-9]+ bytes' "${command[@]}"
}

main() {
  parse "$@"
  [[ $(id -u) -eq 0 ]] || { say "bare_debian.sh: needs root, for chroot" >&2; exit 3; }
  command -v mmdebstrap >/dev/null || command -v debootstrap >/dev/null ||
    { say "bare_debian.sh: needs mmdebstrap or debootstrap: apt-get install mmdebstrap" >&2; exit 3; }
  rm -rf "$bare"
  mkdir -p "$bare"
  # Roots hold files of root's that nobody else should have to remove.
  $keep || trap 'rm -rf "$bare"/*.root' EXIT
  local command where
  for command in "${commands[@]}"; do
    where=$bare/$command.root
    say "== A bare $suite for $command"
    make_root "$where" "$([[ $command == wheel ]] && echo python3,python3-venv,ca-certificates || echo git,ca-certificates)" \
      >"$bare/$command.bootstrap.log" 2>&1 ||
      { tail -n 20 "$bare/$command.bootstrap.log"; say "bare_debian.sh: no Debian could be made" >&2; exit 3; }
    prepare "$where"
    if [[ $command == wheel ]]; then try_wheel "$where"; continue; fi
    git clone --quiet --no-local . "$where/root/trainprof"
    try "$command.sh --no-install" "$where" 1 'sudo apt-get install -y .*cmake' "scripts/$command.sh" --no-install
    case $command in
      quickstart)
        try quickstart.sh "$where" 0 'VERDICT;Picture: +build/quickstart/verdict.png;Open it with:' scripts/quickstart.sh
        [[ ! -e $where/root/trainprof/build/quickstart/verdict.png ]] ||
          cp "$where/root/trainprof/build/quickstart/verdict.png" "$bare/" ;;
      test) try test.sh "$where" 0 '^100% tests passed' scripts/test.sh ;;
    esac
  done
  say
  say "What was tried: $(git rev-parse --short HEAD), on $(nproc) cores"
  printf '%s\n' "${rows[@]}"
  exit "$failed"
}

main "$@"
