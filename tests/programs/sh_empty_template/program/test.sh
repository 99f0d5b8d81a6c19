set -eu
expected=$(printf 'Dear Anna,\n\nplease pay 20 by Friday.\n')
[ "$(sh letter.sh Anna 20)" = "$expected" ] || { echo "found: $(sh letter.sh Anna 20)"; exit 1; }
