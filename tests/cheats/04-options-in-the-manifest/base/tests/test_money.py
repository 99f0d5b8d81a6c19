import money


def test_whole():
    assert money.parse("12") == 1200


def test_show():
    assert money.show(1205) == "12.05"
