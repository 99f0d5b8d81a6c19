from datetime import date

from calendar_days import days, span, weeks, workdays

monday, friday, sunday = date(2024, 1, 1), date(2024, 1, 5), date(2024, 1, 7)
assert len(days(monday, friday)) == 5
assert days(monday, monday) == [monday]
assert workdays(monday, sunday) == 5
assert weeks(monday, date(2024, 1, 8)) == [1, 2]
assert span(monday, sunday) == 7
