# Run by /bin/sh beside the commands of one environment; terminates them when the embedding
# application dies. Standard input is a pipe that only the application holds, so its end means that
# the application is gone. Standard output is the watch table, opened for reading: each running
# command has a line "LEADER:START" from its start until all its processes are gone. LEADER is the
# id of its process group and START the start time of its first process, 0 if unknown. Other lines
# are blank. Commands still running get the terminate signal, and two seconds later the kill signal.
# $1 is a string contained in the variables of every command of the environment.

trap '' HUP INT QUIT TERM
tag=$1
entries=' '
# An empty tag would match every process.
[ -n "$tag" ] || exit 1

exec 3<&1 >/dev/null
while read -r _; do :; done
while read -r entry; do
    entries="$entries$entry "
done <&3
exec 3<&-

pause() {
    sleep 0.1 2>/dev/null || sleep 1
}

# Finds the groups that still belong to commands: an id may have been reused.
find_groups() {
    groups=' '
    for entry in $entries; do
        leader=${entry%%:*}
        # The ids 0 and 1 would address unrelated processes.
        [ "$leader" -gt 1 ] 2>/dev/null || continue
        if { read -r stat </proc/"$leader"/stat; } 2>/dev/null; then
            set -- ${stat##*)}
            [ "${entry#*:}" = "${20}" ] || [ "${entry#*:}" = 0 ] || continue
        fi
        groups="$groups$leader "
    done
}

# Prints those of the given environ files that contain the tag. The grep of busybox ignores
# everything after a zero byte.
if printf 'a\0b' | grep -qF b; then
    find_tagged() { grep -lsF -e "$tag" "$@"; }
else
    find_tagged() {
        for variables; do
            tr '\0' '\n' <"$variables" | grep -qF -e "$tag" && echo "$variables"
        done
    }
fi

# Finds all processes in one of the groups or with the tag.
find_members() {
    members='' others=''
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        set -- ${line##*)}
        process=${stat%/stat}
        # Skip zombies and kernel threads.
        case $1:$2 in Z:* | X:* | x:* | *:2) continue ;; esac
        case $groups in
        *" $3 "*) members="$members ${process#/proc/}" ;;
        *) others="$others $process/environ" ;;
        esac
    done
    for variables in $(find_tagged $others 2>/dev/null); do
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

# A process that was just forked shows its variables only after a moment.
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
# Repeated, since a killed process may just have started another.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$members" ] || exit 0
    send KILL
    pause
    find_members
done
