# tree PATH [DEPTH] prints what is below a directory, as list does; of a repository's own directory only that it is
# there.
[ -e "$1" ] || why "$1"
[ -d "$1" ] || exit $not_directory
[ -r "$1" ] && cd "$1" || exit $denied
find . ${2:+-maxdepth "$2"} -name .git -prune -exec sh -c "$entries" sh {} + \
    -o ! -name . -exec sh -c "$entries" sh {} + 2>/dev/null
exit 0
