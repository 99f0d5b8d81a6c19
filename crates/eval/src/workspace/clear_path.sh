# Removes a path of the current directory. A link or a file in place of a directory above it is removed as well, so that nothing
# outside of the directory changes.
clear_path() {
    at=. rest=$1
    while [ -n "$rest" ]; do
        case $rest in
            */*) part=${rest%%/*} rest=${rest#*/} ;;
            *) part=$rest rest= ;;
        esac
        at=$at/$part
        if [ -z "$rest" ] || [ -L "$at" ] || [ ! -d "$at" ]; then rm -rf -- "$at"; fi
    done
}
