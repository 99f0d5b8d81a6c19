from roster import load

assert load("people.csv") == {"Zo\u00eb": 41, "Jos\u00e9": 29}
