import sys


def main():
    print("Hello")
    return 0


sys.exit(main())
