# links MARKER PATH... prints the target of each link, followed by a record.
marker=$1
shift
for path; do
    if readlink "$path"; then echo "$marker link"; else echo "$marker missing"; fi
done
