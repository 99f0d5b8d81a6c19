set -e
. ./sums.sh
test "$(add 3 -1)" -eq 2
