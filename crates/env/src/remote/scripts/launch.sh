# Runs one command. Given: pintle_k the nonce, pintle_d the directory, pintle_z the program that makes a session,
# pintle_u the supervisor's process and pintle_t its start time, and the program with its arguments as the positional
# parameters. The command's variables are set, but for those that pintle_e puts before the program.
# Answers are records on the standard error, each a line behind the nonce; descriptor 9 is that stream. The start is
# told on the standard output, too: what comes first on either stream is never held up behind the other one.
exec 2>/dev/null
pintle_say() { echo "$pintle_k $*" >&9; }
if ! cd "$pintle_d"; then
    while ! [ -e "$pintle_d" ] && [ "$pintle_d" != / ]; do
        pintle_m=missing
        pintle_d=${pintle_d%/*}
        pintle_d=${pintle_d:-/}
    done
    if ! [ -d "$pintle_d" ]; then pintle_say place file
    elif ! [ -x "$pintle_d" ]; then pintle_say place denied
    else pintle_say place "${pintle_m:-denied}"
    fi
    exit
fi
export PWD
unset OLDPWD
# The program is looked for now: once it is started, 127 is an exit code as good as any.
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
# Variables that no shell passes on are given by another program.
eval "${pintle_e-}"
# The first process tells its number, and when it started, before it becomes the program. It alone has the standard
# error: shells say there how a program was killed.
# It begins only under a supervisor that is alive: a command that was on its way when the host died may arrive after
# everything was ended. From before that look on it carries the mark by which the supervisor finds it.
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
# Some shells give their programs no other descriptor than they are told to.
if [ -n "$pintle_z" ]; then
    "$pintle_z" /bin/sh -c "$pintle_i" "$pintle_k" "$pintle_u" "$pintle_t" "$@" 9>&9
else
    set -m
    /bin/sh -c "$pintle_i" "$pintle_k" "$pintle_u" "$pintle_t" "$@" 9>&9
fi
pintle_say exit $?
