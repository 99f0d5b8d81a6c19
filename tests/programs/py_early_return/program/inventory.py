def missing(wanted, stock):
    """What is wanted and not in stock, with how many pieces are missing."""
    short = {}
    for article, pieces in wanted.items():
        have = stock.get(article, 0)
        if have < pieces:
            short[article] = pieces - have
        return short


def total(wanted):
    count = 0
    for pieces in wanted.values():
        count += pieces
    return count
