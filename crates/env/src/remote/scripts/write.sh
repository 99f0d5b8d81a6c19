# write PATH SIZE NAME replaces a file by SIZE bytes of the standard input, through a file NAME beside it.
follow "$1"
[ ! -d "$target" ] || exit $is_directory
if [ -e "$target" ] && ! [ -f "$target" ]; then exit $not_regular; fi
parent_of "$target"
# The directory's own name may end in a link that leads up: the file goes where the link leads.
temporary=$parent/$3
trap 'rm -f "$temporary"; unmake' EXIT
trap 'exit $failed' HUP INT TERM
# While it is written, what replaces a file is readable by its owner alone: the file may be a secret.
(
    if [ -e "$target" ]; then umask 077; fi
    set -C
    exec cat >"$temporary"
) || refuse "$parent"
# When nobody waits any more the input ends early.
[ "$(($(wc -c <"$temporary")))" -eq "$2" ] || { echo 'the write was cancelled' >&2; exit $failed; }
if [ -e "$target" ]; then
    old=$(identity "$target") || exit $failed
    new=$(identity "$temporary") || exit $failed
    mode=${old##* } old=${old% *} new=${new% *}
    if [ "$old" != "$new" ] && ! chown "$old" "$temporary" 2>/dev/null; then
        # Only the superuser can give a file away; the group alone may still be possible. But a program must not
        # begin to run as somebody else than before.
        chgrp "${old#*:}" "$temporary" 2>/dev/null
        case $mode in ????) mode=$((${mode%???} & 1))${mode#?} ;; esac
    fi
    # After the owner, since a change of owner takes bits away.
    chmod "$mode" "$temporary" || exit $failed
fi
dd if=/dev/null of="$temporary" conv=notrunc,fsync 2>/dev/null || sync
mv -f "$temporary" "$target" || refuse "$parent"
trap - EXIT
