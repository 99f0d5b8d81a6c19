# One for each channel: ends commands when it is told to, and all of them when the lifeline is cut.
# Given: pintle_k the nonce, pintle_tag the mark of the channel's commands, pintle_wait the seconds without a sign of
# life after which the host counts as gone, pintle_linger the tenths of a second for which commands that may be about
# to start are waited for when it is gone, pintle_last what is to be done at the very end.
# A request is a line "ID VERB ..."; an answer is a line "ID ...".
exec 2>/dev/null 9>&-
trap '' HUP INT PIPE
pintle_commands=' '
has_proc=
[ -r /proc/self/stat ] && has_proc=1

# born ID sets birth to the time when a process started; to nothing if it has ended, or if there is no way to know.
born() {
    birth=''
    [ -n "$has_proc" ] && [ "$1" -gt 1 ] && IFS= read -r line <"/proc/$1/stat" || return
    # shellcheck disable=SC2086
    set -- ${line##*") "}
    case $1 in [ZXx]) ;; *) birth=${20} ;; esac
}

# members TAG GROUP START finds who of a command is running: leader and jobs are numbers of processes, grouped says
# whether the group is its own, apart are those that have left the group.
members() {
    leader=0 jobs=0 grouped='' apart='' ours=' '
    group=$2 since=$3
    if [ -z "$has_proc" ]; then
        [ "$group" -gt 1 ] && kill -0 "-$group" && grouped=1 && jobs=1
        [ -n "$grouped" ] && kill -0 "$group" && leader=1 jobs=0
        return
    fi
    # A number that is in use again belongs to somebody else, and so does its group.
    born "$group"
    if [ "$since" -gt 0 ] && [ -n "$birth" ] && [ "$birth" != "$since" ]; then group=0; fi
    # The grep of busybox sees nothing behind a zero byte, unless lines end in one.
    marked=''
    for file in $(grep -lszF -e "$1" /proc/[0-9]*/environ); do
        file=${file#/proc/}
        marked="$marked${marked:+|}${file%/environ}"
    done
    # Without a group of its own nobody is a member by his group: 0 is the group of strangers.
    pattern=${marked:+"^($marked) \\("}
    [ "$group" -gt 1 ] && pattern="$pattern${pattern:+|}\\) [^ZXx] [0-9]+ $group "
    more=''
    [ -n "$pattern" ] && take "$pattern"
    # Children of members are members, whatever they did to their marks.
    while [ -n "$more" ]; do
        take "\\) [^ZXx] ($more) "
    done
}

# take PATTERN takes in the processes whose lines match; more are those that were not known before.
take() {
    more=''
    set -f
    IFS=$pintle_n
    # With the names of the files: a program's name may hold anything, also what looks like another's line.
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
            apart="$apart $id"
        fi
        if [ "$id" = "$group" ]; then leader=1; else jobs=$((jobs + 1)); fi
        ours="$ours$id "
        more="$more${more:+|}$id"
    done
    set +f
}

# deliver SIGNAL sends it to the members found last.
deliver() {
    [ -n "$grouped" ] && kill "-$1" "-$group"
    # shellcheck disable=SC2086
    [ -n "$apart" ] && kill "-$1" $apart
}

# end TAG GROUP START LINGER ends a command: terminate, two seconds, kill. One that may still be about to start is
# waited for LINGER tenths of a second.
end() {
    tenths=0 ended=
    while :; do
        members "$1" "$2" "$3"
        if [ $((leader + jobs)) -eq 0 ]; then
            [ -z "$ended" ] && [ "$tenths" -lt "$4" ] || return 0
        elif [ -z "$ended" ]; then
            ended=$tenths
            deliver TERM
            # One that is stopped hears nothing until it goes on.
            deliver CONT
        elif [ $((tenths - ended)) -ge 70 ]; then
            return 0
        elif [ $((tenths - ended)) -ge 20 ]; then
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
        (end "${command%%:*}" "${rest%%:*}" "${rest#*:}" 0) </dev/null >/dev/null &
    done
    wait
    # The last words may end the very system that a late command would start in.
    case $pintle_last in :) ;; *) pintle_linger=0 ;; esac
    end "$pintle_tag" 0 0 "$pintle_linger"
    eval "$pintle_last"
}

# finish ends everything, and the supervisor.
finish() {
    trap '' USR2
    born "$watcher"
    [ "$birth" = "$watcher_birth" ] && kill "$watcher"
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

# tell SIGNAL sends it to the supervisor, and to nobody who has its number by now.
tell() {
    born $$
    [ "$birth" = "$own_birth" ] && kill "-$1" $$
}

watch() {
    trap 'alive=1' USR1
    trap 'kill $nap; wait $nap; exit' TERM
    # Only now can a sign of life be taken. Commands look whether the supervisor is alive before they begin.
    echo "$pintle_k $$ ${own_birth:-0}"
    exec >/dev/null
    while :; do
        alive=''
        sleep "$pintle_wait" &
        nap=$!
        while kill -0 $nap; do wait $nap; done
        [ -n "$alive" ] || break
    done
    # The supervisor knows the groups of its commands, but may be held up by a full pipe, or gone.
    tell USR2
    sleep "$pintle_wait" &
    nap=$!
    wait $nap
    tell KILL
    trap '' TERM
    end_all
}

born $$
own_birth=$birth
trap finish USR2
watch </dev/null &
watcher=$!
born $watcher
watcher_birth=$birth
# All functions share their variables, so these have names of their own.
while read -r asked verb its_tag its_group its_start extra; do
    case $verb in
    beat)
        born "$watcher"
        [ "$birth" = "$watcher_birth" ] && kill -USR1 "$watcher" && echo "$asked"
        ;;
    note) pintle_commands="$pintle_commands$its_tag:$its_group:$its_start " ;;
    done) forget "$its_tag" ;;
    look)
        members "$its_tag" "$its_group" "$its_start"
        echo "$asked $leader $jobs"
        ;;
    send)
        members "$its_tag" "$its_group" "$its_start"
        deliver "$extra"
        echo "$asked $leader $jobs"
        ;;
    drop)
        forget "$its_tag"
        # It answers when nothing is left.
        (end "$its_tag" "$its_group" "$its_start" "$extra" && echo "$asked") </dev/null &
        ;;
    quit)
        pintle_linger=$its_tag
        break
        ;;
    esac
done
finish
