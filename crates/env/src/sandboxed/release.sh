eval "echo s >&$pintle_report"
# Without it bash exits before the descriptor is restored.
shopt -s execfail 2>/dev/null
trap 'eval "echo f$? >&$pintle_report"' EXIT
eval "{ exec \"\$@\" </dev/null; } $pintle_report>&-"
