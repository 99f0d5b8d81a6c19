set -eu
make --silent
[ "$(cat book.txt)" = "$(printf 'One.\nTwo.')" ]
make --silent clean
[ ! -e book.txt ]
