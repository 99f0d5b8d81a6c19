# targets PATH... prints, for each path, the facts of what it leads to, or an empty line.
for path in "$@"; do
    [ -e "$path" ] && facts L "$path" || echo
done
