#!/bin/sh
# Usage: rotate.sh FILE COUNT: FILE becomes FILE.1, FILE.1 becomes FILE.2 and so on; COUNT old ones stay.
file=$1
count=$2
rm -f "$file.$count"
number=$((count - 1))
while [ "$number" -gt 1 ]; do
    if [ -e "$file.$number" ]; then
        mv "$file.$number" "$file.$((number + 1))"
    fi
    number=$((number - 1))
done
if [ -e "$file" ]; then
    mv "$file" "$file.1"
fi
: > "$file"
