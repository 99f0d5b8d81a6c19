set -eu
found=$(echo '<b>one</b> &lt; <i>two</i>&amp;<br/>three' | sed -f plain.sed)
[ "$found" = 'one < two& three' ] || { echo "found: $found"; exit 1; }
