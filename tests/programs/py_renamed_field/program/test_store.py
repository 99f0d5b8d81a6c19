from reader import load
from writer import dump

line = dump({"id": 7, "email": "Ann@Example.org"})
assert '"version": 2' in line, line
assert load(line) == {"id": 7, "email": "ann@example.org"}
old = '{"id": 7, "mail": "ann@example.org", "version": 1}'
assert load(old) == {"id": 7, "email": "ann@example.org"}
