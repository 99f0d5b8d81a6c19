# rename FROM TO renames a file within one file system.
[ -e "$1" ] || [ -L "$1" ] || fail_access "$1"
if [ -d "$2" ] && ! [ -L "$2" ]; then exit $is_directory; fi
create_parent "$2"
[ "$(device "${1%/*}/")" = "$(device "$parent/")" ] || exit $crossing
# Replace a link to a directory instead of moving into its target.
if [ -d "$2" ]; then set -- "$1" "$2" -T; fi
mv -f ${3+"$3"} "$1" "$2" || fail_write "$parent"
trap - EXIT
