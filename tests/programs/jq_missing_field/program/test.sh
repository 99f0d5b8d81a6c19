set -eu
found=$(jq -r -f revenue.jq orders.json)
[ "$found" = "$(printf 'ann 90\nbob 80')" ] || { echo "found: $found"; exit 1; }
