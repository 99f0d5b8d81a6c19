# stat on BSD and macOS.
stat_path() { stat ${1:+"-$1"} -f '%Xp %z %Fm' "$2"; }
stat_state() { stat -L -f '%Xp %z %Fm %i %Fc' "$1"; }
stat_birth() { stat -L -f '%i %FB' "$1"; }
identity() { stat -f '%u:%g %Mp%Lp' "$1"; }
links() { stat -f %l "$1"; }
inode() { stat -f '%d:%i' "$1"; }
device() { stat -L -f %d "$1"; }
entries='exec stat -f "%Xp %z %Fm %N//" "$@"'
states='exec stat -f "%Xp %z %Fm %i %Fc %N//" "$@"'
facts_of='exec stat -f "%Xp %z %Fm %i %Fc" "$@"'
