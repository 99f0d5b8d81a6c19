RATE = 25


def gross(amount):
    """The price with tax."""
    tax = amount * RATE // 100
    price = amount + tax
    return price


def net(amount):
    """The price without tax."""
    tax = amount * RATE // (100 + RATE)
    price = amount + tax
    return price
