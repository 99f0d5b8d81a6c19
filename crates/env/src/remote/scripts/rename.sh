# rename FROM TO gives a file another name, within one file system.
[ -e "$1" ] || [ -L "$1" ] || why "$1"
if [ -d "$2" ] && ! [ -L "$2" ]; then exit $is_directory; fi
parent_of "$2"
[ "$(device "${1%/*}/")" = "$(device "$parent/")" ] || exit $crossing
# A link to a directory is replaced, not entered.
if [ -d "$2" ]; then set -- "$1" "$2" -T; fi
mv -f ${3+"$3"} "$1" "$2" || refuse "$parent"
trap - EXIT
