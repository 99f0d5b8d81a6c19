# walk MARKER DEPTH PATH [NAME...] prints the seconds since 1970, then the tree as a listing with
# identities, down to DEPTH unless it is empty. Directories .git and PATH/NAME are listed but not
# entered. After a record follow the directories that cannot be read.
marker=$1 depth=$2
[ -e "$3" ] || fail_access "$3"
[ -d "$3" ] || exit $not_directory
[ -r "$3" ] && cd "$3" || exit $denied
shift 3
for name; do
    shift
    set -- "$@" -o -path "./$name"
done
# Not every find has this test.
find . -prune -path . >/dev/null 2>&1 || set --
date +%s
exec 3>&1
# Entries that disappear or must not be read are expected. A failure of any other kind may hide
# entries, which must not count as absent.
messages=$({
    find . ${depth:+-maxdepth "$depth"} \( -name .git "$@" \) -prune -exec /bin/sh -c "$states" sh {} + \
        -o ! -name . -exec /bin/sh -c "$states" sh {} + 2>&1 >&3 || echo failed
} | sed -e 's/.*: Permission denied$/expected/' -e 's/.*: No such file or directory$/expected/' | sort -u)
case $messages in
'' | expected | "expected${newline}failed") ;;
*)
    printf '%s\n' "$messages" >&2
    exit $failed
    ;;
esac
echo "$marker unreadable"
[ -z "$messages" ] || find . \( -name .git "$@" \) -prune -o -type d ! -name . -exec /bin/sh -c '
    for directory; do
        if ! [ -r "$directory" ] || ! [ -x "$directory" ]; then printf "%s//\n" "$directory"; fi
    done' sh {} + 2>/dev/null
echo "$marker end"
