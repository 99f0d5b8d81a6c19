set -e
. ./sums.sh
test "$(add 5 -4)" -eq 1
