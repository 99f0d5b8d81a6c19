"""Days between two days, both included."""

from datetime import date, timedelta

DAY = timedelta(days=1)


def days(first, last):
    """Every day from the first to the last."""
    found = []
    day = first
    while day < last:
        found.append(day)
        day += DAY
    return found


def is_workday(day):
    """Monday to Friday."""
    return day.weekday() < 5


def workdays(first, last):
    """How many of them are worked."""
    return sum(1 for day in days(first, last) if is_workday(day))


def weeks(first, last):
    """The numbers of the weeks that are touched."""
    return sorted({day.isocalendar()[1] for day in days(first, last)})


def span(first, last):
    """How many days there are."""
    if last < first:
        raise ValueError("the last day is before the first")
    return (last - first).days
