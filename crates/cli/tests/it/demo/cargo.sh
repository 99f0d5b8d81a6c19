#!/bin/sh
[ $1 = test ] || exec echo cargo 1.0.0
if grep -q '<= 10' src/symbol.rs; then
    echo 'test result: ok. 9 passed; 0 failed'
else
    echo 'test outline::tests::chapters_come_in_order ... FAILED'
    echo 'test result: FAILED. 8 passed; 1 failed'
    exit 101
fi
