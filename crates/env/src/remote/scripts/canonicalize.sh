# canonicalize PATH prints where a path leads, every link followed, whether or not anything is there.
rest=${1#/} done='' links=0
while [ -n "$rest" ]; do
    name=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest='' ;; esac
    case $name in
    '' | .) continue ;;
    ..)
        done=${done%/*}
        continue
        ;;
    esac
    if [ -L "$done/$name" ]; then
        links=$((links + 1))
        [ "$links" -le 40 ] || exit $looped
        link=$(readlink "$done/$name" && echo .) || exit $failed
        link=${link%"$newline".}
        rest=$link/$rest
        case $link in /*) done='' ;; esac
    else
        [ -z "$done" ] || ! [ -e "$done" ] || [ -d "$done" ] || exit $not_directory
        [ -z "$done" ] || ! [ -d "$done" ] || [ -x "$done" ] || exit $denied
        done=$done/$name
    fi
done
printf %s "${done:-/}"
