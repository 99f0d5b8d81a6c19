# create_symlink PATH TARGET creates a symbolic link.
if [ -e "$1" ] || [ -L "$1" ]; then
    echo 'the path exists' >&2
    exit $failed
fi
create_parent "$1"
ln -s -- "$2" "$1" || fail_write "$parent"
trap - EXIT
