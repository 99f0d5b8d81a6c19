# contents MARK LIMIT PATH... prints files, each followed by a record behind the mark: what stands there.
mark=$1 limit=$2
shift 2
for path in "$@"; do
    if [ -d "$path" ]; then echo "$mark directory"
    elif ! [ -e "$path" ]; then echo "$mark missing"
    elif [ -f "$path" ] && [ -r "$path" ] && head -c "$limit" <"$path"; then echo "$mark file"
    else echo "$mark closed"
    fi
done
