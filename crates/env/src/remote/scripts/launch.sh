# Runs one command. Input: pintle_k the record marker, pintle_d the directory, pintle_z the path of
# setsid, pintle_u the supervisor's process id and pintle_t its start time, and the program with its
# arguments as the positional parameters. The command's variables are set, except those that
# pintle_e adds in front of the program. Reports records on standard error (kept as descriptor 9),
# each one line after the marker. The start is reported on standard output too: the first data on
# either stream must not be blocked behind the other one.
exec 2>/dev/null
pintle_say() { echo "$pintle_k $*" >&9; }
if ! cd "$pintle_d"; then
    while ! [ -e "$pintle_d" ] && [ "$pintle_d" != / ]; do
        pintle_m=missing
        pintle_d=${pintle_d%/*}
        pintle_d=${pintle_d:-/}
    done
    if ! [ -d "$pintle_d" ]; then pintle_say directory file
    elif ! [ -x "$pintle_d" ]; then pintle_say directory denied
    else pintle_say directory "${pintle_m:-denied}"
    fi
    exit
fi
export PWD
unset OLDPWD
# Look for the program before starting it: afterwards 127 is an ordinary exit code.
pintle_found() { [ -f "$1" ] && { pintle_m=denied; [ -x "$1" ]; }; }
pintle_find() {
    pintle_m=missing
    case $1 in */*) pintle_found "$1"; return ;; esac
    pintle_p=${PATH-}:
    while [ -n "$pintle_p" ]; do
        pintle_q=${pintle_p%%:*}
        pintle_p=${pintle_p#*:}
        pintle_found "${pintle_q:-.}/$1" && return
    done
    return 1
}
if ! pintle_find "$1"; then
    pintle_say program "$pintle_m"
    exit
fi
# Variables that no shell exports are set by env.
eval "${pintle_e-}"
# The first process reports its id and start time before it executes the program. It alone gets the
# standard error, where shells report how a program was killed. It starts only under a live
# supervisor: a command that was on its way when the embedding application died may arrive after
# everything was terminated. Even before this check it carries the tag by which the supervisor finds
# it.
pintle_i='pintle_alive() {
    kill -0 "$1" || return
    [ "$2" -gt 0 ] && IFS= read -r pintle_s </proc/"$1"/stat || return 0
    pintle_u=$2
    set -- ${pintle_s##*") "}
    case $1 in [ZXx]) return 1 ;; esac
    [ "${20}" = "$pintle_u" ]
}
pintle_alive "$1" "$2" || { echo "$0 orphaned" >&9; exit; }
shift 2
unset pintle_s pintle_u
IFS= read -r pintle_s </proc/$$/stat
pintle_s="$0 start $$ ${pintle_s-}"
echo "$pintle_s"
echo "$pintle_s" >&9
unset pintle_s
exec 2>&9 9>&- "$@"'
# Some shells pass only explicitly redirected descriptors to a program.
if [ -n "$pintle_z" ]; then
    "$pintle_z" /bin/sh -c "$pintle_i" "$pintle_k" "$pintle_u" "$pintle_t" "$@" 9>&9
else
    set -m
    /bin/sh -c "$pintle_i" "$pintle_k" "$pintle_u" "$pintle_t" "$@" 9>&9
fi
pintle_say exit $?
