# place PATH prints the inode of a directory and the time of its birth.
[ -d "$1" ] || fail_access "$1"
stat_birth "$1" || exit $failed
