# contents MARKER LIMIT PATH... prints files, each followed by a record of its type after the
# marker.
marker=$1 limit=$2
shift 2
for path in "$@"; do
    if [ -d "$path" ]; then echo "$marker directory"
    elif ! [ -e "$path" ]; then echo "$marker missing"
    elif [ -f "$path" ] && [ -r "$path" ] && head -c "$limit" <"$path"; then echo "$marker file"
    else echo "$marker unreadable"
    fi
done
