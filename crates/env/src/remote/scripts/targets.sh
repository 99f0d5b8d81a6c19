# targets PATH... prints the metadata of each path's target, or an empty line if there is none.
for path in "$@"; do
    [ -e "$path" ] && stat_path L "$path" || echo
done
