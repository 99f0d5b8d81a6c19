from clamp import clamp

assert [clamp(value) for value in (-5, 0, 40, 100, 101)] == [0, 0, 40, 100, 100]
assert open("clamp.py", "rb").read(3) == b"\xef\xbb\xbf", "the mark is gone"
