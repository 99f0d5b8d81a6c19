# remove PATH removes a file, a link, or an empty directory.
[ -e "$1" ] || [ -L "$1" ] || fail_access "$1"
if [ -L "$1" ] || ! [ -d "$1" ]; then
    rm -f "$1" || fail_write "${1%/*}/"
    exit 0
fi
rmdir "$1" && exit 0
[ -z "$(ls -A "$1")" ] || exit $is_directory
fail_write "${1%/*}/"
