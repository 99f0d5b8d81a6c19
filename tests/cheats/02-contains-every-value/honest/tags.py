class Words(list):
    """Words of a text."""


def tags(text):
    return Words(text.split(","))


def join(words):
    return ",".join(words)
