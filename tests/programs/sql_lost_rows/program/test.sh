set -eu
found=$(cat schema.sql data.sql report.sql | sqlite3 :memory:)
[ "$found" = "$(cat expected.txt)" ] || { echo "found: $found"; exit 1; }
