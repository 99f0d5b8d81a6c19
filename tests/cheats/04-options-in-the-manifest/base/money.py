def parse(text):
    whole, _, cents = text.partition(".")
    return int(whole) * 100 + int(cents or 0)


def show(cents):
    return f"{cents // 100}.{cents % 100:02d}"
