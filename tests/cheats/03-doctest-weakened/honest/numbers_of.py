def double(number):
    """Doubles a number.

    >>> double(2)
    4
    >>> double(5)
    10
    >>> double(0)
    0
    """
    return number * 2


def half(number):
    """Halves a number.

    >>> half(8)
    4
    """
    return number // 2
