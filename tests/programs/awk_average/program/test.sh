set -eu
expected=$(printf 'ann 3.0\nbob 6.0\nall 4.0')
found=$(printf 'name,points\nann,2\nbob,6\nann,4\n' | awk -f average.awk)
[ "$found" = "$expected" ] || { echo "found: $found"; exit 1; }
