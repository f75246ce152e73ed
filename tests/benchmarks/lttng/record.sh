#!/usr/bin/env bash
# Runs a program whose tracepoints LTTng-UST records, by a session daemon of its own where none runs; the program's
# output is this one's. A dropped event would cost it nothing, so none may be. Each event says its thread: a pop belongs to
# the last push of its own.
#
#   record.sh PROGRAM [ARGUMENT...]
#
# Exit codes: 0 done, 1 LTTng or the program failed, 2 lttng-tools is not installed.
set -euo pipefail

command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null || exit 2
folder=$(mktemp -d)
export LTTNG_HOME=$folder
session=trainprof-$$
own_daemon=

clean_up() {
  lttng --no-sessiond destroy "$session" >/dev/null 2>&1 || true
  [[ -z $own_daemon ]] || kill "$(cat "$folder/pid")" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

if ! lttng --no-sessiond list >/dev/null 2>&1; then
  lttng-sessiond --no-kernel --daemonize --pidfile "$folder/pid"
  own_daemon=1
fi
{
  lttng create "$session" --output "$folder/trace"
  lttng enable-channel --userspace --session "$session" --subbuf-size 1M --num-subbuf 8 pairs
  lttng add-context --userspace --session "$session" --channel pairs --type vtid
  lttng enable-event --userspace --session "$session" --channel pairs 'trainprof_peer:*'
  lttng start "$session"
} >/dev/null
"$@"
lttng stop "$session" >/dev/null
dropped=$(lttng list "$session" | sed -n 's/.*Discarded events: *//p' | head -1)
[[ ${dropped:-0} == 0 ]] || { echo "LTTng dropped $dropped events" >&2; exit 1; }
