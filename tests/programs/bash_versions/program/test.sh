check() {
    bash newer.sh "$1" "$2"
    [[ $? -eq $3 ]] || { echo "newer $1 $2: expected $3"; exit 1; }
}
check 1.10 1.9 0
check 1.9 1.10 1
check 2.0.0 1.99.99 0
check 1.2 1.2.0 1
check 1.2.1 1.2 0
