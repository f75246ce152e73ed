#!/usr/bin/env bash
# Makes .venv-hta, in which HolisticTraceAnalysis (HTA) can be imported, for the test formats.hta: the
# pinned packages of tests/formats/hta/requirements.txt, some 190 MB. HTA's own list adds JupyterLab.
#
#   scripts/install_hta.sh
#
# Does nothing when it is there and up to date. Exit codes: 0 it works, 1 it could not be made, 2 usage
# error, 3 not on this machine: Python is older than 3.11, or PyPI cannot be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=.venv-hta
readonly requirements=tests/formats/hta/requirements.txt

say() { echo "install_hta: $*" >&2; }

case ${1:-} in
  "") ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

if cmp -s "$requirements" "$venv/requirements.txt"; then exit 0; fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  say "needs Python 3.11 or later, here is $(python3 --version)"
  exit 3
fi
rm -rf "$venv"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { python3 -m venv "$venv" &&
  "$venv/bin/python" -m pip install --no-deps --no-compile --only-binary :all: --disable-pip-version-check \
    --retries 2 --timeout 15 -r "$requirements" &&
  "$venv/bin/python" -c 'import hta.trace_analysis'; } >"$log" 2>&1; then
  tail -n 15 "$log" >&2
  rm -rf "$venv"
  if grep -qE 'Retrying|Could not fetch URL|ConnectionError|NewConnectionError|name resolution' "$log"; then
    say "PyPI cannot be reached; the test of HTA will be skipped"
    exit 3
  fi
  exit 1
fi
# Last, so that half an environment does not look like one.
cp "$requirements" "$venv/requirements.txt"
say "made $venv, $(du -sm "$venv" | cut -f1) MB, in $SECONDS s"
