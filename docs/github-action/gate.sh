#!/usr/bin/env bash
# Run the diagnoser (and its baseline), judge it, hand the reports on. Exit status: the gate's.
set -euo pipefail

read -r -a more <<<"$RUN_ARGUMENTS"
track=--no-track
[ -z "${MLFLOW_TRACKING_URI:-}" ] || track=--track

run() { # NAME SPEC
  evalharness run -d "$1=$2" --suite "$SUITE" --out "$OUT/$1" "$track" "${more[@]}"
  [ "$EVIDENCE" != true ] || evalharness score "$OUT/$1" --suite "$SUITE" --evidence >"$OUT/$1.txt"
}

run candidate "$DIAGNOSER"
against=()
if [ -n "$BASELINE_DIAGNOSER" ]; then
  [ -z "$BASELINE" ] || { echo "baseline and baseline-diagnoser must not both be given" >&2; exit 2; }
  run baseline "$BASELINE_DIAGNOSER"
  against=(--baseline "$OUT/baseline")
elif [ -n "$BASELINE" ]; then
  against=(--baseline "$BASELINE")
fi
[ "$ALLOW_UNSEALED" != true ] || against+=(--allow-unsealed)

status=0
evalharness gate "$OUT/candidate" --policy "$POLICY" "${against[@]}" \
  --json-file "$OUT/gate.json" --junit "$OUT/gate.xml" --markdown "$OUT/gate.md" || status=$?
if [ -f "$OUT/gate.json" ]; then
  cat "$OUT/gate.md" >>"$GITHUB_STEP_SUMMARY"
  verdict=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$OUT/gate.json")
  {
    echo "verdict=$verdict"
    echo "json=$OUT/gate.json"
    echo "junit=$OUT/gate.xml"
    echo "markdown=$OUT/gate.md"
  } >>"$GITHUB_OUTPUT"
fi
exit "$status"
