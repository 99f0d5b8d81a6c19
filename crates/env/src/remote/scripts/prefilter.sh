# prefilter TOOL FLAG PATTERN PATH... prints the unreadable files; after an empty line, the files in
# which the pattern can match; after another one, the files with a zero byte: "z PATH", or "w PATH"
# if they start like UTF-16 and are searched as text. No path contains a line feed.
tool=$1 flag=$2 pattern=$3 unreadable=''
shift 3
for path in "$@"; do
    if ! [ -f "$path" ] || ! [ -r "$path" ]; then
        printf '%s\n' "$path"
        unreadable=1
    fi
done
echo
if [ -n "$unreadable" ]; then
    for path in "$@"; do
        shift
        if [ -f "$path" ] && [ -r "$path" ]; then set -- "$@" "$path"; fi
    done
fi
[ $# -gt 0 ] || exit 0
case $tool in
rg) rg --no-config --no-messages -uuu --text --files-with-matches "$flag" -e "$pattern" -- "$@" ;;
*) grep -lsF -e "$pattern" -- "$@" ;;
esac
# If the search tool fails, all files are searched locally.
[ $? -le 1 ] || printf '%s\n' "$@"
echo

# zeros FILE... bisects the list to find files with zero bytes; most trees have none.
zeros() {
    [ "$(cat -- "$@" 2>/dev/null | tr -dc '\000' | head -c 1 | wc -c)" -gt 0 ] || return 0
    if [ $# -eq 1 ]; then
        case $(head -c 2 <"$1" | od -An -tx1 | tr -d ' \n') in
        fffe | feff) printf 'w %s\n' "$1" ;;
        *) printf 'z %s\n' "$1" ;;
        esac
        return 0
    fi
    at=0 half=''
    while [ $at -lt $(($# / 2)) ]; do
        at=$((at + 1))
        half="$half \"\${$at}\""
    done
    eval "zeros $half"
    shift $(($# / 2))
    zeros "$@"
}
zeros "$@"
