#!/usr/bin/env bash
# One visit to a machine with one NVIDIA GPU, at most 8 minutes: what works there, the tests that
# need a GPU, and a few recorded cases, packed small enough to carry away.
#
#     injectors/gpu_session.sh OUT [MATRIX]          from the top of the repository
#
# PYTHON names an interpreter with evalharness[record] and pytest (default: python3). OUT receives
# doctor.txt, tests.txt, record.txt, summary.txt and cases.tar.gz.00, .01, ... of at most 15 MB;
# `cat cases.tar.gz.* | tar xz` brings back the folders corpus/ and labels/. Exit status: 0 all
# went well; 1 something did not, see summary.txt; 2 there is no GPU, or the call is wrong.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:?"usage: injectors/gpu_session.sh OUT [MATRIX]"}
matrix=${2:-injectors/scenarios/recorded_cuda.yaml}
python=${PYTHON:-python3}
most_parts=4
failed=0

why=$("$python" -c '
from injectors.capabilities import cuda
found = cuda()
print(found.reason)
raise SystemExit(not found)' 2>&1) || {
    echo "gpu_session: needs a GPU that torch can use: ${why##*$'\n'}" >&2
    exit 2
}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$out/summary.txt"
echo "GPU: $why" | tee -a "$out/summary.txt"

# Runs a command for at most so many seconds; its output goes to NAME.txt, its outcome to both.
stage() {
    local name=$1 limit_s=$2 status=0 begin=$SECONDS
    shift 2
    timeout --kill-after=5 "$limit_s" "$@" >"$out/$name.txt" 2>&1 || status=$?
    [ "$status" -eq 0 ] || failed=1
    echo "$name: exit status $status after $((SECONDS - begin)) s" | tee -a "$out/summary.txt"
}

evalharness=("$python" -c 'from harness.cli import main; main()')
stage doctor 60 "${evalharness[@]}" doctor
stage tests 130 "$python" -m pytest -q -k "cuda or gpu" tests/injectors
stage record 260 "${evalharness[@]}" record --matrix "$matrix" --out "$work"

if [ -d "$work/labels" ]; then
    (cd "$work" && tar cz corpus labels 2>/dev/null | split -b 15M -d - "$out/cases.tar.gz.")
    parts=$(find "$out" -name 'cases.tar.gz.*' | wc -l)
    echo "cases: $(find "$work/corpus" -name case.json 2>/dev/null | wc -l) in $parts parts" |
        tee -a "$out/summary.txt"
    if [ "$parts" -gt "$most_parts" ]; then
        echo "gpu_session: more than $most_parts parts to carry" | tee -a "$out/summary.txt" >&2
        failed=1
    fi
else
    echo "cases: none" | tee -a "$out/summary.txt"
    failed=1
fi
exit "$failed"
