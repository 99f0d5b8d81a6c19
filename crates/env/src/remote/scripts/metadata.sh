# metadata PATH prints mode (hexadecimal), size and modification time, then inode and time of change.
# The second line is "owned" if the file belongs to the user.
[ -e "$1" ] || fail_access "$1"
stat_state "$1" || exit $failed
if [ -O "$1" ]; then echo owned; fi
