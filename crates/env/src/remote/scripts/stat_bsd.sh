# stat on BSD and macOS.
stat_path() { stat ${1:+"-$1"} -f '%Xp %z %Fm' "$2"; }
identity() { stat -f '%u:%g %Mp%Lp' "$1"; }
device() { stat -L -f %d "$1"; }
entries='exec stat -f "%Xp %z %Fm %N//" "$@"'
