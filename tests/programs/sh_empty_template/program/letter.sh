#!/bin/sh
# Usage: letter.sh NAME AMOUNT
sed -e "s/@NAME@/$1/g" -e "s/@AMOUNT@/$2/g" letter.tmpl
