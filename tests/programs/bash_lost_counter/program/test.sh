printf 'INFO up\nERROR disk\nWARN heat\nERROR net\n' > log
found=$(bash count.sh log)
[[ $found == "2 errors, 1 warnings" ]] || { echo "found: $found"; exit 1; }
