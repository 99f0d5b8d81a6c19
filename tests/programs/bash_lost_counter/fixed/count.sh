#!/usr/bin/env bash
# Counts the lines of a log that report an error, and those that report a warning.
set -euo pipefail

errors=0
warnings=0
while read -r level _; do
    case $level in
        ERROR*) errors=$((errors + 1)) ;;
        WARN*) warnings=$((warnings + 1)) ;;
    esac
done < <(grep -E '^(ERROR|WARN)' "$1")
echo "$errors errors, $warnings warnings"
