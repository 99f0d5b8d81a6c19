set -e
. ./sums.sh
test "$(add 4 0)" -eq 4
test "$(double 3)" -eq 6
