# write PATH SIZE NAME replaces a file with SIZE bytes of standard input, through a temporary file
# NAME beside it. If another file in its place would lose something, the file is written in place,
# and copies of both contents are kept until it is synchronised.

# has_attributes PATH succeeds for a file with an access control list or attributes of the user.
has_attributes() {
    case $(ls -ld "$1") in ??????????[+@]*) return 0 ;; esac
    command -v getfattr >/dev/null || return 1
    [ -n "$(getfattr --absolute-names -m '^user[.]' "$1" 2>/dev/null)" ]
}

# is_seen succeeds if the target is still the file that was checked, and not a link.
is_seen() {
    [ ! -L "$target" ] && [ "$(inode "$target")" = "$seen" ] && return
    echo 'another file took its place meanwhile' >&2
    return 1
}

# synchronise FILE makes its content durable.
synchronise() { dd if=/dev/null of="$1" conv=notrunc,fsync 2>/dev/null || sync; }

follow "$1"
[ ! -d "$target" ] || exit $is_directory
if [ -e "$target" ] && ! [ -f "$target" ]; then exit $not_regular; fi
old='' in_place='' before=''
if [ -e "$target" ]; then
    old=$(identity "$target") || exit $failed
    seen=$(inode "$target") || exit $failed
    mode=${old##* } owner=${old% *}
    bits=000$mode
    bits=${bits#"${bits%???}"}
    if [ -O "$target" ]; then permission=[2367]??; else permission=*[2367]*; fi
    case $bits in
    $permission) ;;
    *) echo "$mode" >&2; exit $read_only ;;
    esac
    if ! [ -w "$target" ]; then
        [ -O "$target" ] || exit $denied
        # The owner has the permission.
        echo 'the file system is read-only' >&2
        exit $failed
    fi
    if [ "$(links "$target")" != 1 ] || has_attributes "$target"; then in_place=yes; fi
fi
create_parent "$target"
# The directory may be a link upwards: the temporary file goes to its target.
temporary=$parent/$3
if [ -n "$old" ] && ! [ -w "$parent" ]; then in_place=yes temporary=/tmp/$3; fi
trap 'rm -f "$temporary" ${before:+"$before"}; remove_created' EXIT
trap 'exit $failed' HUP INT TERM
# A replacement is readable by its owner alone while it is written: the file may be a secret.
(
    if [ -n "$old" ]; then umask 077; fi
    set -C
    exec cat >"$temporary"
) || fail_write "$parent"
# A cancelled write closes the input early.
[ "$(($(wc -c <"$temporary")))" -eq "$2" ] || { echo 'the write was cancelled' >&2; exit $failed; }
if [ -n "$old" ] && [ -z "$in_place" ]; then
    new=$(identity "$temporary") || exit $failed
    # Only the superuser can change the owner.
    if [ "$owner" != "${new% *}" ] && ! chown "$owner" "$temporary" 2>/dev/null; then
        in_place=yes
    else
        # After the owner, since changing the owner clears bits.
        chmod "$mode" "$temporary" || exit $failed
    fi
fi
synchronise "$temporary"
if [ -z "$in_place" ]; then
    if [ -z "$old" ]; then
        mv -f "$temporary" "$target" || fail_write "$parent"
        trap - EXIT
        exit 0
    fi
    # A mount point cannot be replaced, nor can the file of another user in a sticky directory.
    if mv -f "$temporary" "$target" 2>/dev/null; then
        trap - EXIT
        exit 0
    fi
fi
is_seen || exit $failed
# A special built-in such as `:` would end the script.
true >>"$target" || exit $failed
# An overlay gives a file another inode when it is first opened for writing.
seen=$(inode "$target") || exit $failed
# A signal must not leave a part of the content.
trap '' HUP INT TERM
before=$temporary.before
(
    umask 077
    set -C
    exec cat "$target" >"$before"
) || exit $failed
synchronise "$before"
is_seen || exit $failed
if ! cat "$temporary" >"$target"; then
    if ! is_seen || ! cat "$before" >"$target"; then
        echo "the file is damaged, and its former content is in $before" >&2
        before=''
    fi
    exit $failed
fi
is_seen || exit $failed
# A write clears the bits that let a program run as another user.
[ "$(identity "$target")" = "$old" ] || chmod "$mode" "$target" 2>/dev/null
synchronise "$target"
