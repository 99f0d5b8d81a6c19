# metadata PATH prints the kind and bits in hexadecimal, the size, and the time of the last change.
[ -e "$1" ] || why "$1"
facts L "$1" || exit $failed
