# shellcheck shell=bash disable=SC2154
# Sourced by the scripts beside it: one line on the terminal for each noisy step, all of its output
# in a log, and the end of that log when the step fails. Set `log` before the first step.

readonly heartbeat_s=20    # a step that takes longer says that it lives
readonly failure_lines=30  # of the log, shown when a step fails

say() { printf '%s\n' "$*"; }

# The compiler takes up to 1.5 GB on a file that includes LibTorch.
parallel_jobs() {
  local cores memory_mb by_memory
  cores=$(nproc)
  memory_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo 2>/dev/null)
  by_memory=$((${memory_mb:-4096} / 1500))
  ((by_memory < 1)) && by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

_heartbeat() {
  local start=$SECONDS line
  while sleep "$heartbeat_s" >/dev/null 2>&1; do
    line=$(tail -n 1 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | cut -c 1-80)
    printf '    %3d s  %s\n' $((SECONDS - start)) "$line"
  done
}

# step TITLE COMMAND...: runs it with its output in $log. On failure shows the log's end and returns
# the command's status.
step() {
  local title=$1 start=$SECONDS status=0 beat
  shift
  mkdir -p "$(dirname "$log")"
  printf -- '-- %s\n' "$title"
  printf '\n== %s\n$ %s\n' "$title" "$*" >>"$log"
  _heartbeat &
  beat=$!
  "$@" >>"$log" 2>&1 </dev/null || status=$?
  kill "$beat" 2>/dev/null || true
  wait "$beat" 2>/dev/null || true
  if [[ $status -ne 0 ]]; then
    say "   failed after $((SECONDS - start)) s, exit status $status. The end of $log:"
    tail -n "$failure_lines" "$log" | sed 's/^/   | /'
    return "$status"
  fi
  say "   done in $((SECONDS - start)) s"
}
