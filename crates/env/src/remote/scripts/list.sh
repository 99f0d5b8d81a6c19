# list PATH prints the entries of a directory: facts, and the path between "./" and "//", which no path holds.
[ -e "$1" ] || why "$1"
[ -d "$1" ] || exit $not_directory
[ -r "$1" ] && cd "$1" || exit $denied
# Names go away while they are looked at.
find . ! -name . -prune -exec sh -c "$entries" sh {} + 2>/dev/null
exit 0
