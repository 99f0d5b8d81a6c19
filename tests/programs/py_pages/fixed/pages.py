"""Cuts a list into pages."""


def page_count(total, size):
    """How many pages `total` entries make."""
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    return -(-total // size)


def page(entries, number, size):
    """The entries of a page; the first page has the number 1."""
    last = page_count(len(entries), size)
    if not 1 <= number <= last:
        raise IndexError(f"no page {number}: there are {last}")
    start = (number - 1) * size
    return entries[start:start + size]
