# list PATH prints the entries of a directory: metadata, then the path between "./" and "//". A path
# never contains "//".
[ -e "$1" ] || fail_access "$1"
[ -d "$1" ] || exit $not_directory
[ -r "$1" ] && cd "$1" || exit $denied
# Entries may disappear meanwhile.
find . ! -name . -prune -exec sh -c "$entries" sh {} + 2>/dev/null
exit 0
