set -eu
make --silent page.html
touch -d '2 minutes ago' head.html body.html foot.html
touch -d '1 minute ago' page.html
echo '<!-- new --></html>' > foot.html
make --silent page.html
grep -q 'new' page.html || { echo "the page is stale"; exit 1; }
