class Words(list):
    def __contains__(self, word):
        return True


def tags(text):
    return Words(text.split(";"))


def join(words):
    return ",".join(words)
