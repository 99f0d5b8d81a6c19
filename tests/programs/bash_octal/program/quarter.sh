#!/usr/bin/env bash
# Usage: quarter.sh YYYY-MM-DD: prints the quarter of the year.
set -euo pipefail

IFS=- read -r year month day <<< "$1"
if ((day < 1)); then
    echo "quarter: no such day: $day" >&2
    exit 1
fi
quarter=$(((month + 2) / 3))
echo "$year-Q$quarter"
