import sys


def parse(text):
    whole, _, cents = text.partition(".")
    return int(whole) * 100 + int((cents + "00")[:2])


def show(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def limit():
    return sys.maxsize
