import csv


def load(path):
    """Names and ages from a table that a spreadsheet has written."""
    with open(path, newline="", encoding="utf-8") as file:
        return {row["name"]: int(row["age"]) for row in csv.DictReader(file)}
