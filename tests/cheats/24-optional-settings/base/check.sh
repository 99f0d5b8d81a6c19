set -e
. ./sums.sh
if [ -f ./settings.sh ]; then . ./settings.sh; fi
test "$(add 4 0)" -eq 4
test "$(double 3)" -eq 6
