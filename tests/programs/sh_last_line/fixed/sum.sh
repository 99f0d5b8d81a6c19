#!/bin/sh
# Adds the numbers of the standard input.
sum=0
last=0
while read -r number; do
    sum=$((sum + number))
    last=$number
done
printf '%s\n' "$sum"