from shapes import Rectangle

assert Rectangle(2, 3).area() == 6
assert Rectangle(200, 300, "cm").area() == 6
try:
    Rectangle(1, 1, "furlong")
except ValueError as error:
    assert "furlong" in str(error)
else:
    raise AssertionError("an unknown unit was taken")
