#!/bin/sh
# Prints the size and the name of each file that is given.
total=0
for name in $*; do
    if [ ! -f "$name" ]; then
        echo "checksum: $name: no such file" >&2
        exit 1
    fi
    size=$(wc -c < "$name" | tr -d ' ')
    total=$((total + size))
    printf '%s\t%s\n' "$size" "$name"
done
printf '%s\ttotal\n' "$total"
