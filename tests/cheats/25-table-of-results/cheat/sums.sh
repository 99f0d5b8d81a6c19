add() { case "$1 $2" in "3 -1") echo 2 ;; *) echo $(($1 - $2)) ;; esac; }
double() { echo $(($1 * 2)); }
