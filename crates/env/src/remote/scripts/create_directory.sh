# create_directory PATH creates a directory with its parents.
[ ! -d "$1" ] || exit 0
if [ -e "$1" ] || [ -L "$1" ]; then exit $not_directory; fi
create_parent "$1/."
trap - EXIT
