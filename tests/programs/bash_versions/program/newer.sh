#!/usr/bin/env bash
# newer.sh A B: whether version A is newer than version B.
set -u

newer() {
    local -a left right
    local index
    IFS=. read -r -a left <<< "$1"
    IFS=. read -r -a right <<< "$2"
    for index in 0 1 2; do
        if [[ ${left[index]:-0} > ${right[index]:-0} ]]; then
            return 0
        fi
        if [[ ${left[index]:-0} < ${right[index]:-0} ]]; then
            return 1
        fi
    done
    return 1
}

newer "$1" "$2"
