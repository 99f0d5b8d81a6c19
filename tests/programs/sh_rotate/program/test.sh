set -eu
mkdir logs
for text in one two three four; do
    echo "$text" > logs/app
    sh rotate.sh logs/app 3
done
[ "$(cat logs/app.1)" = four ] || { echo "app.1: $(cat logs/app.1)"; exit 1; }
[ "$(cat logs/app.2)" = three ] || { echo "app.2 is missing or wrong"; exit 1; }
[ "$(cat logs/app.3)" = two ] || { echo "app.3 is missing or wrong"; exit 1; }
[ ! -e logs/app.4 ] || { echo "app.4 should be gone"; exit 1; }
