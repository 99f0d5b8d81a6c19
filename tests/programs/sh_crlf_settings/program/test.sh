set -eu
found=$(seq 45 | sh import.sh)
[ "$found" = "3 batches from localhost:8080" ] || { echo "found: $found"; exit 1; }
[ "$(tr -cd '\r' < settings.ini | wc -c)" -eq "$(wc -l < settings.ini)" ] || { echo "line ends have changed"; exit 1; }
