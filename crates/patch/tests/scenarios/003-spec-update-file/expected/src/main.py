import sys


def main():
    print("Hello")
    print("World")
    return 1


sys.exit(main())
