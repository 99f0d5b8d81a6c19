# stat of GNU and busybox; busybox reports whole seconds only.
stat_path() { stat ${1:+"-$1"} -c '%f %s %.9Y' "$2"; }
identity() { stat -c '%u:%g %a' "$1"; }
device() { stat -L -c %d "$1"; }
entries='exec stat -c "%f %s %.9Y %n//" "$@"'
