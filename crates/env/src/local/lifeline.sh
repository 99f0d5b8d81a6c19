# Run by /bin/sh beside the commands of one environment, which it ends when the host is gone.
#
# The input is a line that only the host holds, and the end of the input is the end of the host.
# The output is the board, to be read: each command has a line there, "LEADER:START", from its start
# until nothing of it is left; LEADER is the number of its process group and START the time at which
# its first process started, 0 if that is not known. The other lines are blank. What runs when the
# host is gone gets the terminate signal, and two seconds later the kill signal. $1 is what the
# variables of every command of the environment hold.

trap '' HUP INT QUIT TERM
mark=$1
entries=' '
# An empty mark would be everybody's.
[ -n "$mark" ] || exit 1

exec 3<&1 >/dev/null
while read -r _; do :; done
while read -r entry; do
    entries="$entries$entry "
done <&3
exec 3<&-

pause() {
    sleep 0.1 2>/dev/null || sleep 1
}

# The groups that are still those of commands: a number may be in use again.
find_groups() {
    groups=' '
    for entry in $entries; do
        leader=${entry%%:*}
        # The numbers 0 and 1 would be everybody's, too.
        [ "$leader" -gt 1 ] 2>/dev/null || continue
        if { read -r stat </proc/"$leader"/stat; } 2>/dev/null; then
            set -- ${stat##*)}
            [ "${entry#*:}" = "${20}" ] || [ "${entry#*:}" = 0 ] || continue
        fi
        groups="$groups$leader "
    done
}

# Those of the given files of variables that hold the mark. The grep of busybox does not look behind a zero byte.
if printf 'a\0b' | grep -qF b; then
    find_marks() { grep -lsF -e "$mark" "$@"; }
else
    find_marks() {
        for variables; do
            tr '\0' '\n' <"$variables" | grep -qF -e "$mark" && echo "$variables"
        done
    }
fi

# Everybody who runs in one of the groups or carries the mark.
find_members() {
    members='' others=''
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        set -- ${line##*)}
        process=${stat%/stat}
        # A zombie is gone, and the threads of the kernel are not ours.
        case $1:$2 in Z:* | X:* | x:* | *:2) continue ;; esac
        case $groups in
        *" $3 "*) members="$members ${process#/proc/}" ;;
        *) others="$others $process/environ" ;;
        esac
    done
    for variables in $(find_marks $others 2>/dev/null); do
        variables=${variables%/environ}
        members="$members ${variables#/proc/}"
    done
}

# Without a process table only the groups are known.
[ -r /proc/self/stat ] || find_members() {
    members=
    for group in $groups; do
        kill -s 0 -- "-$group" 2>/dev/null && members="$members -$group"
    done
}

send() {
    for member in $members; do
        kill -s "$1" -- "$member" 2>/dev/null
    done
}

# Who was just forked shows its variables in a moment.
pause
find_groups
find_members
send TERM
send CONT
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$members" ] || exit 0
    pause
    find_members
done
# Who is killed may just have started another.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$members" ] || exit 0
    send KILL
    pause
    find_members
done
