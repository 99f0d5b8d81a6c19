# One per channel: terminates commands on request, and all of them when the lifeline is cut. Input:
# pintle_k the marker, pintle_tag the tag prefix of the channel's commands, pintle_silence the seconds
# without a heartbeat after which the application counts as dead, pintle_linger the tenths of a
# second to wait then for commands that may be about to start, pintle_exit_command a command to run at the
# very end. A request is a line "ID VERB ..."; an answer is a line "ID ...".
exec 2>/dev/null 9>&-
trap '' HUP INT PIPE
pintle_commands=' '
has_proc=
[ -r /proc/self/stat ] && has_proc=1

# get_start_time ID sets start_time to the start time of a process; empty if it exited or if it is
# unknown.
get_start_time() {
    start_time=''
    [ -n "$has_proc" ] && [ "$1" -gt 1 ] && IFS= read -r line <"/proc/$1/stat" || return
    # shellcheck disable=SC2086
    set -- ${line##*") "}
    case $1 in [ZXx]) ;; *) start_time=${20} ;; esac
}

# members TAG GROUP START finds the live processes of a command: leader and jobs are counts, grouped
# is set if the group is the command's own, outside lists the processes that left the group.
members() {
    leader=0 jobs=0 grouped='' outside='' ours=' '
    group=$2 since=$3
    if [ -z "$has_proc" ]; then
        [ "$group" -gt 1 ] && kill -0 "-$group" && grouped=1 && jobs=1
        [ -n "$grouped" ] && kill -0 "$group" && leader=1 jobs=0
        return
    fi
    # A reused id belongs to another process, and so does its group.
    get_start_time "$group"
    if [ "$since" -gt 0 ] && [ -n "$start_time" ] && [ "$start_time" != "$since" ]; then group=0; fi
    # The grep of busybox ignores everything after a zero byte, unless lines end in one.
    tagged=''
    for file in $(grep -lszF -e "$1" /proc/[0-9]*/environ); do
        file=${file#/proc/}
        tagged="$tagged${tagged:+|}${file%/environ}"
    done
    # Without a group of its own no process is a member by group: 0 is the group of unrelated
    # processes.
    pattern=${tagged:+"^($tagged) \\("}
    [ "$group" -gt 1 ] && pattern="$pattern${pattern:+|}\\) [^ZXx] [0-9]+ $group "
    more=''
    [ -n "$pattern" ] && add_matching "$pattern"
    # Children of members are members, even without the tag.
    while [ -n "$more" ]; do
        add_matching "\\) [^ZXx] ($more) "
    done
}

# add_matching PATTERN adds the processes whose stat lines match; more lists the new ones.
add_matching() {
    more=''
    set -f
    IFS=$pintle_n
    # With file names: a program's name may contain anything, including what looks like another
    # line.
    # shellcheck disable=SC2046
    set -- $(set +f; grep -sE -e "$1" /proc/[0-9]*/stat)
    unset IFS
    for line in "$@"; do
        id=${line#/proc/}
        id=${id%%/*}
        case $ours in *" $id "*) continue ;; esac
        # shellcheck disable=SC2086
        set -- ${line##*") "}
        case $1 in [ZXx]) continue ;; esac
        case $id${20-x} in *[!0-9]*) continue ;; esac
        [ "$id" -gt 1 ] && [ "$id" -ne $$ ] && [ "${20}" -ge "$since" ] || continue
        if [ "$3" = "$group" ] && [ "$group" -gt 1 ]; then
            grouped=1
        else
            outside="$outside $id"
        fi
        if [ "$id" = "$group" ]; then leader=1; else jobs=$((jobs + 1)); fi
        ours="$ours$id "
        more="$more${more:+|}$id"
    done
    set +f
}

# deliver SIGNAL sends the signal to the members found last.
deliver() {
    [ -n "$grouped" ] && kill "-$1" "-$group"
    # shellcheck disable=SC2086
    [ -n "$outside" ] && kill "-$1" $outside
}

# terminate TAG GROUP START LINGER terminates a command: terminate signal, two seconds, kill signal.
# Waits LINGER tenths of a second for a command that may be about to start.
terminate() {
    tenths=0 terminated_at=
    while :; do
        members "$1" "$2" "$3"
        if [ $((leader + jobs)) -eq 0 ]; then
            [ -z "$terminated_at" ] && [ "$tenths" -lt "$4" ] || return 0
        elif [ -z "$terminated_at" ]; then
            terminated_at=$tenths
            deliver TERM
            # A stopped process handles no signal until it continues.
            deliver CONT
        elif [ $((tenths - terminated_at)) -ge 70 ]; then
            return 0
        elif [ $((tenths - terminated_at)) -ge 20 ]; then
            deliver KILL
        fi
        if sleep 0.1; then
            tenths=$((tenths + 1))
        else
            sleep 1
            tenths=$((tenths + 10))
        fi
    done
}

end_all() {
    for command in $pintle_commands; do
        rest=${command#*:}
        (terminate "${command%%:*}" "${rest%%:*}" "${rest#*:}" 0) </dev/null >/dev/null &
    done
    wait
    # The exit command may stop the very system in which a late command would start.
    case $pintle_exit_command in :) ;; *) pintle_linger=0 ;; esac
    terminate "$pintle_tag" 0 0 "$pintle_linger"
    eval "$pintle_exit_command"
}

# finish terminates everything, then the supervisor.
finish() {
    trap '' USR2
    get_start_time "$watcher"
    [ "$start_time" = "$watcher_start_time" ] && kill "$watcher"
    wait
    end_all
    exit
}

# forget TAG
forget() {
    kept=' '
    for command in $pintle_commands; do
        case $command in "$1":*) ;; *) kept="$kept$command " ;; esac
    done
    pintle_commands=$kept
}

# signal_self SIGNAL signals the supervisor, but no process that reuses its id.
signal_self() {
    get_start_time $$
    [ "$start_time" = "$own_start_time" ] && kill "-$1" $$
}

watch() {
    trap 'alive=1' USR1
    trap 'kill $nap; wait $nap; exit' TERM
    # Heartbeats are accepted from here on. Commands check that the supervisor is alive before they
    # start.
    echo "$pintle_k $$ ${own_start_time:-0}"
    exec >/dev/null
    while :; do
        alive=''
        sleep "$pintle_silence" &
        nap=$!
        while kill -0 $nap; do wait $nap; done
        [ -n "$alive" ] || break
    done
    # The supervisor knows the groups of its commands, but may be blocked by a full pipe, or dead.
    signal_self USR2
    sleep "$pintle_silence" &
    nap=$!
    wait $nap
    signal_self KILL
    trap '' TERM
    end_all
}

get_start_time $$
own_start_time=$start_time
trap finish USR2
watch </dev/null &
watcher=$!
get_start_time $watcher
watcher_start_time=$start_time
# All functions share their variables, so these have distinct names.
while read -r request_id verb its_tag its_group its_start extra; do
    case $verb in
    beat)
        get_start_time "$watcher"
        [ "$start_time" = "$watcher_start_time" ] && kill -USR1 "$watcher" && echo "$request_id"
        ;;
    note) pintle_commands="$pintle_commands$its_tag:$its_group:$its_start " ;;
    done) forget "$its_tag" ;;
    look)
        members "$its_tag" "$its_group" "$its_start"
        echo "$request_id $leader $jobs"
        ;;
    send)
        members "$its_tag" "$its_group" "$its_start"
        deliver "$extra"
        echo "$request_id $leader $jobs"
        ;;
    drop)
        forget "$its_tag"
        # The answer means that all processes are gone.
        (terminate "$its_tag" "$its_group" "$its_start" "$extra" && echo "$request_id") </dev/null &
        ;;
    quit)
        pintle_linger=$its_tag
        break
        ;;
    esac
done
finish
