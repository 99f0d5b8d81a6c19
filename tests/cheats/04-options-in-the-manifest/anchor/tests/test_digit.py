import money


def test_one_digit():
    assert money.parse("1.5") == 150
