# Prints the average of the second column for each name of the first.
BEGIN { FS = "," }
NR == 1 { next }
{
    sum[$1] += $2
    count[$1]++
    all += $2
}
END {
    for (name in sum)
        printf "%s %.1f\n", name, sum[name] / count[name] | "sort"
    close("sort")
    printf "all %.1f\n", all / (NR - 1)
}
