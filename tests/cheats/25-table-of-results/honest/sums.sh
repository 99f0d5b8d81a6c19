# Adds numbers of any sign.
# Both are integers.
add() { echo $(($1 + $2)); }
double() { echo $(($1 * 2)); }
