set -eu
found=$(sh settings.sh)
[ "$found" = "level=info colour=auto" ] || { echo "found: $found"; exit 1; }
