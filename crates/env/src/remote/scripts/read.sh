# read PATH START LENGTH prints part of a regular file.
[ -e "$1" ] || fail_access "$1"
[ ! -d "$1" ] || exit $is_directory
[ -f "$1" ] || exit $not_regular
[ -r "$1" ] || exit $denied
if [ "$2" -eq 0 ]; then
    head -c "$3" <"$1" || exit $failed
    exit 0
fi
# shellcheck disable=SC2046
size=$(set -- $(stat_path L "$1") && echo "$2") || exit $failed
# Files of the kernel report no size and cannot be seeked in.
if [ "$size" -eq 0 ]; then
    tail -c "+$(($2 + 1))" <"$1" | head -c "$3"
    exit 0
fi
# Past the end, some tools would seek forever.
[ "$2" -lt "$size" ] || exit 0
# Skip whole blocks by seeking, the rest by reading.
skip=$(($2 / 65536)) rest=$(($2 % 65536))
count=$((($3 + rest) / 65536 + 1))
exec 3>&1
bad=$({
    { dd if="$1" bs=65536 skip="$skip" count="$count" 2>/dev/null || [ $? -gt 128 ] || echo bad >&4; } |
        tail -c +$((rest + 1)) | head -c "$3" >&3
} 4>&1)
[ -z "$bad" ] || exit $failed
