# tree PATH [DEPTH] lists a tree recursively, in the format of list; .git directories are listed but
# not entered.
[ -e "$1" ] || fail_access "$1"
[ -d "$1" ] || exit $not_directory
[ -r "$1" ] && cd "$1" || exit $denied
find . ${2:+-maxdepth "$2"} -name .git -prune -exec sh -c "$entries" sh {} + \
    -o ! -name . -exec sh -c "$entries" sh {} + 2>/dev/null
exit 0
