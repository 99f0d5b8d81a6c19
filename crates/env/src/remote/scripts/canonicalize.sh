# canonicalize PATH prints PATH with every link resolved, whether or not the target exists.
rest=${1#/} resolved='' links=0
while [ -n "$rest" ]; do
    name=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest='' ;; esac
    case $name in
    '' | .) continue ;;
    ..)
        resolved=${resolved%/*}
        continue
        ;;
    esac
    if [ -L "$resolved/$name" ]; then
        links=$((links + 1))
        [ "$links" -le 40 ] || exit $looped
        link=$(readlink "$resolved/$name" && echo .) || exit $failed
        link=${link%"$newline".}
        rest=$link/$rest
        case $link in /*) resolved='' ;; esac
    else
        [ -z "$resolved" ] || ! [ -e "$resolved" ] || [ -d "$resolved" ] || exit $not_directory
        [ -z "$resolved" ] || ! [ -d "$resolved" ] || [ -x "$resolved" ] || exit $denied
        resolved=$resolved/$name
    fi
done
printf %s "${resolved:-/}"
