LOW, HIGH = 0, 100


def clamp(value):
    """The value, or the bound that it is beyond."""
    return max(LOW, min(HIGH, value))
