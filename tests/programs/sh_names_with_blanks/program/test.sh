set -eu
printf 12345 > 'two words.txt'
printf 123 > plain.txt
expected=$(printf '5\ttwo words.txt\n3\tplain.txt\n8\ttotal')
found=$(sh checksum.sh 'two words.txt' plain.txt)
[ "$found" = "$expected" ] || { echo "found: $found"; exit 1; }
