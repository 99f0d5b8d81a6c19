from tags import Note

first = Note("one").tag("a")
second = Note("two").tag("b")
assert first.tags == ["a"], first.tags
assert second.tags == ["b"], second.tags
given = ["x"]
Note("three", given).tag("y")
assert given == ["x"], given
