for row in 2024-01-31:2024-Q1 2024-06-01:2024-Q2 2024-08-09:2024-Q3 2024-09-30:2024-Q3 2024-12-08:2024-Q4; do
    found=$(bash quarter.sh "${row%%:*}") || exit 1
    [[ $found == "${row##*:}" ]] || { echo "$row: found $found"; exit 1; }
done
