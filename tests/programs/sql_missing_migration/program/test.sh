set -eu
found=$(cat migrations/*.sql report.sql | sqlite3 -bail :memory: 2>&1) || { echo "$found"; exit 1; }
[ "$found" = "$(printf 'Ann|NO\nBob|??')" ] || { echo "found: $found"; exit 1; }
