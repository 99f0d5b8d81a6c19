# system_info EXPRESSION prints properties of the system, one per line; then the names of the
# environment variables; after an empty line, the names of those whose value matches the expression.
uname -s || echo
uname -r || echo
pwd
printf '%s\n' "${HOME-}"
if stat -c %d / >/dev/null 2>&1; then echo c; else echo f; fi
if command -v rg >/dev/null; then echo rg; else echo; fi
# A value with line feeds may add names that do not exist, which does no harm.
env | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p'
echo
env | grep -E -e "$1" | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p'
