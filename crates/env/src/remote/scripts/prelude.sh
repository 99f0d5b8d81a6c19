# Shared by the scripts for files. A script reports a failure by its exit status.
missing=71 not_directory=72 is_directory=73 not_regular=74 denied=75 looped=76 crossing=77 failed=78 read_only=79
newline='
'

# follow PATH sets target to PATH with links at its end resolved, whether or not the target exists.
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

# fail_access PATH exits with the reason why PATH cannot be used.
fail_access() {
    ancestor=$1
    while ! [ -e "$ancestor" ] && ! [ -L "$ancestor" ] && [ "$ancestor" != / ]; do
        ancestor=${ancestor%/*}
        ancestor=${ancestor:-/}
    done
    if ! [ -e "$ancestor" ]; then
        follow "$ancestor"
        [ "$ancestor" = "$target" ] || fail_access "$target"
        exit $missing
    fi
    if [ "$ancestor" = "$1" ]; then exit $denied; fi
    [ -d "$ancestor" ] || exit $not_directory
    [ -x "$ancestor" ] || exit $denied
    exit $missing
}

# fail_write PATH exits with the reason why writing to PATH failed; the tool's message is on
# standard error.
fail_write() {
    # Nothing is denied to the superuser, so the failure has another reason.
    [ -w "$1" ] || [ "$(id -u)" = 0 ] || exit $denied
    exit $failed
}

# create_parent PATH sets parent and creates that directory if missing. Created directories are
# removed again if the script fails and they are empty: a script that sets its own EXIT trap calls
# remove_created in it.
create_parent() {
    parent=${1%/*}
    parent=${parent:-/}
    existing=$parent
    while ! [ -e "$existing" ] && ! [ -L "$existing" ]; do
        existing=${existing%/*}
        existing=${existing:-/}
    done
    trap remove_created EXIT
    mkdir -p "$parent" && return
    ancestor=$parent
    while ! [ -e "$ancestor" ] && ! [ -L "$ancestor" ]; do
        ancestor=${ancestor%/*}
        ancestor=${ancestor:-/}
    done
    [ -d "$ancestor" ] || exit $not_directory
    fail_write "$ancestor"
}

# remove_created removes the directories that create_parent created.
remove_created() {
    created=$parent
    while [ "$created" != "$existing" ] && [ -n "$created" ]; do
        rmdir "$created" 2>/dev/null
        created=${created%/*}
    done
}
