set -eu
[ "$(echo 'p(1200, 0, 12)' | bc -q loan.bc)" = 100.00 ]
found=$(echo 'p(10000, 6, 24)' | bc -q loan.bc)
[ "$found" = 443.20 ] || [ "$found" = 443.21 ] || { echo "found: $found"; exit 1; }
