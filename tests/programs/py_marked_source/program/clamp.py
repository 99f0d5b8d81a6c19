LOW, HIGH = 100, 0


def clamp(value):
    """The value, or the bound that it is beyond."""
    return max(LOW, min(HIGH, value))
