set -e
for file in tests/*.sh; do sh "$file"; done
