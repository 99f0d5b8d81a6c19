BEGIN { FS = "\t" }
/^#/ { next }
NF != 3 { printf "line %d: expected 3 columns, found %d\n", NR, NF; bad = 1; exit }
{ total += $2 * $3 }
END { if (bad) exit 1; printf "%.2f\n", total }
