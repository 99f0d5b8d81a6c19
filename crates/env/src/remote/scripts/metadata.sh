# metadata PATH prints mode (hexadecimal), size and modification time.
[ -e "$1" ] || fail_access "$1"
stat_path L "$1" || exit $failed
