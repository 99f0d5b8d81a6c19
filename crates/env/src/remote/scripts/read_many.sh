# read_many MARKER LIMIT TOTAL READ PATH... prints the contents of files up to LIMIT bytes each and
# TOTAL bytes together, of which READ bytes were read before.
marker=$1 limit=$2 total=$3 read=$4
shift 4

# fits FACTS... returns whether only files within the limits are listed.
fits() {
    printf '%s\n' "$1" | {
        sum=$read
        while IFS=' ' read -r mode size _; do
            case $mode in 8???) ;; *) exit 1 ;; esac
            [ "$size" -le "$limit" ] || exit 1
            sum=$((sum + size))
        done
        [ "$sum" -lt "$total" ]
    }
}

# All at once, if nothing changes meanwhile: the sizes, a record, and the contents.
readable=1
for path; do
    if [ -L "$path" ] || ! [ -f "$path" ] || ! [ -r "$path" ]; then readable=''; fi
done
if [ -n "$readable" ] && facts=$(sh -c "$facts_of" sh "$@" 2>/dev/null) && fits "$facts"; then
    printf '%s\n' "$facts"
    echo "$marker sizes"
    cat "$@" 2>/dev/null && [ "$facts" = "$(sh -c "$facts_of" sh "$@" 2>/dev/null)" ] && {
        echo "$marker all"
        exit 0
    }
    echo "$marker again"
fi

# Else one by one, each followed by a record.
for path; do
    if [ "$read" -gt 0 ] && [ "$read" -ge "$total" ]; then echo "$marker skipped"
    elif [ -L "$path" ]; then echo "$marker not_a_file"
    elif ! [ -e "$path" ]; then echo "$marker missing"
    elif ! [ -f "$path" ]; then echo "$marker not_a_file"
    elif ! [ -r "$path" ] || ! size=$(wc -c <"$path"); then echo "$marker unreadable"
    elif [ "$size" -gt "$limit" ]; then echo "$marker too_large"
    elif [ "$read" -gt 0 ] && [ $((read + size)) -gt "$total" ]; then
        read=$total
        echo "$marker skipped"
    else
        read=$((read + size))
        # One byte beyond the limit shows that the file has grown.
        if head -c $((limit + 1)) <"$path"; then echo "$marker file"; else echo "$marker unreadable"; fi
    fi
done
