from pages import page, page_count

assert page_count(0, 10) == 0
assert page_count(10, 10) == 1
assert page_count(11, 10) == 2, page_count(11, 10)
assert page(list(range(11)), 2, 10) == [10]
try:
    page([1], 2, 10)
except IndexError:
    pass
else:
    raise AssertionError("page 2 of one entry")
