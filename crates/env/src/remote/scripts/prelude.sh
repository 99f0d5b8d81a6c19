# What the tools for files share. A tool is a script with its own arguments; what went wrong is its exit status.
missing=71 not_directory=72 is_directory=73 not_regular=74 denied=75 looped=76 crossing=77 failed=78
newline='
'

# follow PATH sets target to the place that the path names when links at its end are followed, even if nothing is
# there.
follow() {
    target=$1 links=0
    while [ -L "$target" ]; do
        links=$((links + 1))
        [ "$links" -le 40 ] || exit $looped
        link=$(readlink "$target" && echo .) || exit $failed
        link=${link%"$newline".}
        case $link in
        /*) target=$link ;;
        *) target=${target%/*}/$link ;;
        esac
    done
}

# why PATH exits with the reason why nothing can be done with it.
why() {
    place=$1
    while ! [ -e "$place" ] && ! [ -L "$place" ] && [ "$place" != / ]; do
        place=${place%/*}
        place=${place:-/}
    done
    if ! [ -e "$place" ]; then
        follow "$place"
        [ "$place" = "$target" ] || why "$target"
        exit $missing
    fi
    if [ "$place" = "$1" ]; then exit $denied; fi
    [ -d "$place" ] || exit $not_directory
    [ -x "$place" ] || exit $denied
    exit $missing
}

# refuse PATH exits with the reason why a tool has failed at it: what it said is on the standard error.
refuse() {
    # To the superuser nothing is denied, so it must be something else.
    [ -w "$1" ] || [ "$(id -u)" = 0 ] || exit $denied
    exit $failed
}

# parent_of PATH sets parent, and makes the directory where it is missing. What it makes is removed again when the tool
# fails, if nobody has put anything into it: a tool that sets its own trap for EXIT calls unmake in it.
parent_of() {
    parent=${1%/*}
    parent=${parent:-/}
    present=$parent
    while ! [ -e "$present" ] && ! [ -L "$present" ]; do
        present=${present%/*}
        present=${present:-/}
    done
    trap unmake EXIT
    mkdir -p "$parent" && return
    place=$parent
    while ! [ -e "$place" ] && ! [ -L "$place" ]; do
        place=${place%/*}
        place=${place:-/}
    done
    [ -d "$place" ] || exit $not_directory
    refuse "$place"
}

# unmake removes the directories that parent_of has made.
unmake() {
    made=$parent
    while [ "$made" != "$present" ] && [ -n "$made" ]; do
        rmdir "$made" 2>/dev/null
        made=${made%/*}
    done
}
