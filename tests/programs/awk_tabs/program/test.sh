set -eu
found=$(awk -f total.awk prices.tsv) || { echo "$found"; exit 1; }
[ "$found" = 29.00 ] || { echo "found: $found"; exit 1; }
