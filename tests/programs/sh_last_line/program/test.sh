set -eu
[ "$(printf '1\n2\n4\n' | sh sum.sh)" = 7 ] || { echo "found: $(printf '1\n2\n4\n' | sh sum.sh)"; exit 1; }
