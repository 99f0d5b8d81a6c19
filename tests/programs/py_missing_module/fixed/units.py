"""Lengths in metres."""

FACTORS = {"m": 1, "cm": 0.01, "km": 1000}


def to_metres(length, unit):
    """The length in metres."""
    if unit not in FACTORS:
        raise ValueError(f"unknown unit: {unit}")
    return length * FACTORS[unit]
