import csv


def load(path):
    """Names and ages from a table that a spreadsheet has written."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        return {row["name"]: int(row["age"]) for row in csv.DictReader(file)}
