def tags(text):
    return text.split(";")


def join(words):
    return ",".join(words)
