# set_mode PATH MODE sets the permission bits of a file or directory.
[ -e "$1" ] || fail_access "$1"
chmod "$2" "$1" && exit 0
# Nothing is denied to the superuser, so the failure has another reason.
[ "$(id -u)" = 0 ] || exit $denied
exit $failed
