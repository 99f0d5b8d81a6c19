# stat of GNU and busybox; busybox reports whole seconds only.
stat_path() { stat ${1:+"-$1"} -c '%f %s %.9Y' "$2"; }
stat_state() { stat -L -c '%f %s %.9Y %i %.9Z' "$1"; }
stat_birth() { stat -L -c '%i %.9W' "$1"; }
identity() { stat -c '%u:%g %a' "$1"; }
links() { stat -c %h "$1"; }
inode() { stat -c '%d:%i' "$1"; }
device() { stat -L -c %d "$1"; }
entries='exec stat -c "%f %s %.9Y %n//" "$@"'
states='exec stat -c "%f %s %.9Y %i %.9Z %n//" "$@"'
facts_of='exec stat -c "%f %s %.9Y %i %.9Z" "$@"'
