# Run by /bin/sh in the sandbox; executes the command. The arguments are the descriptor of a report,
# a descriptor that is to be closed, the program and its arguments. The report gets the line "s", and
# after it "f" and the exit code of the shell if the program cannot be executed. The command inherits
# neither descriptor: a shell keeps what it is to restore after a redirection out of programs.

eval "exec $2>&-"
pintle_report=$1
shift 2
eval "echo s >&$pintle_report"
# Without it bash exits before the descriptor is restored.
shopt -s execfail 2>/dev/null
trap 'eval "echo f$? >&$pintle_report"' EXIT
eval "{ exec \"\$@\"; } $pintle_report>&-"
