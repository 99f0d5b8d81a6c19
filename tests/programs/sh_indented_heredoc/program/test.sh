set -eu
expected=$(printf 'usage: deploy [-n] TARGET\n  -n  only say what would be done')
[ "$(sh usage.sh -h)" = "$expected" ] || { echo "found: $(sh usage.sh -h)"; exit 1; }
[ "$(sh usage.sh staging)" = "deploying to staging" ]
