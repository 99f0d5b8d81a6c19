#!/bin/sh
# Says how many batches the rows of the standard input make.
value() {
    sed -n "s/^$1 = //p" settings.ini | tr -d '\r'
}
batch=$(value batch)
rows=$(wc -l | tr -d ' ')
if [ "$batch" -lt 1 ]; then
    echo "import: batch must be at least 1" >&2
    exit 1
fi
echo "$(((rows + batch - 1) / batch)) batches from $(value host):$(value port)"
