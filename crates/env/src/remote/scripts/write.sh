# write PATH SIZE NAME replaces a file with SIZE bytes of standard input, through a temporary file
# NAME beside it.
follow "$1"
[ ! -d "$target" ] || exit $is_directory
if [ -e "$target" ] && ! [ -f "$target" ]; then exit $not_regular; fi
create_parent "$target"
# The directory may be a link upwards: the temporary file goes to its target.
temporary=$parent/$3
trap 'rm -f "$temporary"; remove_created' EXIT
trap 'exit $failed' HUP INT TERM
# A replacement is readable by its owner alone while it is written: the file may be a secret.
(
    if [ -e "$target" ]; then umask 077; fi
    set -C
    exec cat >"$temporary"
) || fail_write "$parent"
# A cancelled write closes the input early.
[ "$(($(wc -c <"$temporary")))" -eq "$2" ] || { echo 'the write was cancelled' >&2; exit $failed; }
if [ -e "$target" ]; then
    old=$(identity "$target") || exit $failed
    new=$(identity "$temporary") || exit $failed
    mode=${old##* } old=${old% *} new=${new% *}
    if [ "$old" != "$new" ] && ! chown "$old" "$temporary" 2>/dev/null; then
        # Only the superuser can change the owner; changing only the group may still be possible.
        # But a setuid program must not start to run as another user.
        chgrp "${old#*:}" "$temporary" 2>/dev/null
        case $mode in ????) mode=$((${mode%???} & 1))${mode#?} ;; esac
    fi
    # After the owner, since changing the owner clears bits.
    chmod "$mode" "$temporary" || exit $failed
fi
dd if=/dev/null of="$temporary" conv=notrunc,fsync 2>/dev/null || sync
mv -f "$temporary" "$target" || fail_write "$parent"
trap - EXIT
