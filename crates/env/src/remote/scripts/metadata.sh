# metadata PATH prints mode (hexadecimal), size and modification time, then inode and time of change.
[ -e "$1" ] || fail_access "$1"
stat_state "$1" || exit $failed
