"""Goals of the suite `long`. Each changes one concept in every module of a small shop."""

import dataclasses

NAMES = ["order", "invoice", "product", "shipment", "payment", "supplier"]


@dataclasses.dataclass
class Step:
    """Files with their contents after a step, the files that it removes, and its hidden test."""

    files: dict
    test: str
    removed: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Goal:
    name: str
    prompt: str
    base: dict
    steps: list


def module(name, code):
    """Returns a module of the shop, whose description no goal changes."""
    head = f'"""The {name}s of the shop."""\n\n'
    return head + code.strip("\n") + f'\n\n\ndef describe():\n    return "{name}s"\n'


def shop(modules, others):
    """Returns a repository with these modules, and tests that pass before and after each goal."""
    tests = "import unittest\n\n"
    tests += "".join(f"import shop.{name}\n" for name in NAMES)
    tests += "\n\nclass Descriptions(unittest.TestCase):\n"
    for name in NAMES:
        tests += f"    def test_{name}(self):\n        self.assertEqual(shop.{name}.describe(), \"{name}s\")\n\n"
    files = {"shop/__init__.py": "", "tests/__init__.py": "", "tests/test_shop.py": tests.rstrip() + "\n"}
    files.update({f"shop/{name}.py": module(name, code) for name, code in modules.items()})
    return files | others


def each_module(before, after, test):
    """Returns the code of the modules before the goal, and one step for each module."""
    steps = [Step({f"shop/{name}.py": module(name, after(name))}, test(name)) for name in NAMES]
    return {name: before(name) for name in NAMES}, steps


def imports():
    return "from shop import " + ", ".join(NAMES) + "\n\nMODULES = [" + ", ".join(NAMES) + "]\n"


def rename():
    def before(name):
        return f'''
def {name}s_of_customer(rows, customer_id):
    """Returns the {name}s of one customer."""
    return [row for row in rows if row["customer_id"] == customer_id]


def count_by_customer(rows):
    counts = {{}}
    for row in rows:
        counts[row["customer_id"]] = counts.get(row["customer_id"], 0) + 1
    return counts
'''

    def after(name):
        return before(name).replace("customer", "client")

    def test(name):
        return f'''
from shop import {name}

rows = [{{"client_id": 1, "n": 1}}, {{"client_id": 2, "n": 2}}, {{"client_id": 1, "n": 3}}]
assert [row["n"] for row in {name}.{name}s_of_client(rows, 1)] == [1, 3]
assert {name}.count_by_client(rows) == {{1: 2, 2: 1}}
assert not [key for key in vars({name}) if "customer" in key]
'''

    data = "".join(f'{{"id": {n}, "customer_id": {n % 3}}}\n' for n in range(9))
    app = '''"""Reads the data of the shop."""

import json

FIELD = "customer_id"


def load(path="data/rows.jsonl"):
    with open(path) as file:
        return [json.loads(line) for line in file]


def customers(rows):
    return sorted({row[FIELD] for row in rows})
'''
    test_app = '''
from shop import app

rows = app.load()
assert app.clients(rows) == [0, 1, 2]
assert all("customer_id" not in row for row in rows) and len(rows) == 9
assert not hasattr(app, "customers")
'''
    modules, steps = each_module(before, after, test)
    files = {"shop/app.py": app, "data/rows.jsonl": data}
    steps.append(Step({path: text.replace("customer", "client") for path, text in files.items()}, test_app))
    prompt = (
        "A customer is called a client now, everywhere: functions, parameters and fields of rows, such as `client_id`, "
        "`orders_of_client`, `count_by_client` and `clients` in shop/app.py. The rows in data/rows.jsonl use the new "
        "field as well. No old name stays."
    )
    return Goal("rename_customer", prompt, shop(modules, files), steps)


def parameter():
    def before(name):
        return f'''
def total(rows):
    """Returns the total of the {name}s as text."""
    return f"{{sum(row['amount'] for row in rows):.2f}} EUR"
'''

    def after(name):
        return f'''
def total(rows, currency="EUR"):
    """Returns the total of the {name}s in a currency as text."""
    amounts = [row["amount"] for row in rows if row.get("currency", "EUR") == currency]
    return f"{{sum(amounts):.2f}} {{currency}}"
'''

    def test(name):
        return f'''
from shop import {name}

rows = [{{"amount": 1.5}}, {{"amount": 2, "currency": "USD"}}, {{"amount": 1, "currency": "EUR"}}]
assert {name}.total(rows) == "2.50 EUR"
assert {name}.total(rows, "USD") == "2.00 USD"
assert {name}.total(rows, currency="CHF") == "0.00 CHF"
'''

    app = '"""Totals of all modules."""\n\n' + imports()
    base = app + "\n\ndef totals(rows):\n    return {module.describe(): module.total(rows) for module in MODULES}\n"
    gold = app + (
        '\n\ndef totals(rows, currency="EUR"):\n'
        "    return {module.describe(): module.total(rows, currency) for module in MODULES}\n"
    )
    test_app = '''
from shop import app

rows = [{"amount": 1}, {"amount": 4, "currency": "USD"}]
assert set(app.totals(rows, "USD").values()) == {"4.00 USD"}
assert set(app.totals(rows).values()) == {"1.00 EUR"}
assert len(app.totals(rows)) == 6
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"shop/app.py": gold}, test_app))
    prompt = (
        "`total` of each module, and `totals` in shop/app.py, take a parameter `currency`, by default \"EUR\". Only rows of "
        "this currency count; a row without the key `currency` is in EUR. The text ends with the currency."
    )
    return Goal("currency_parameter", prompt, shop(modules, {"shop/app.py": base}), steps)


def data_format():
    def before(name):
        return f'''
import configparser


def load(path="data/{name}.ini"):
    """Returns the {name}s by name, with their amounts."""
    parser = configparser.ConfigParser()
    parser.read(path)
    return {{section: int(parser[section]["amount"]) for section in parser.sections()}}
'''

    def after(name):
        return f'''
import json


def load(path="data/{name}.json"):
    """Returns the {name}s by name, with their amounts."""
    with open(path) as file:
        return {{entry["name"]: entry["amount"] for entry in json.load(file)}}
'''

    amounts = {name: [(f"{name}-{n}", n * 10 + len(name)) for n in range(1, 4)] for name in NAMES}
    ini, steps = {}, []
    for name in NAMES:
        ini[f"data/{name}.ini"] = "".join(f"[{key}]\namount = {amount}\n" for key, amount in amounts[name])
        entries = ",\n".join(f'  {{"name": "{key}", "amount": {amount}}}' for key, amount in amounts[name])
        test = f'''
import os

from shop import {name}

assert {name}.load() == {dict(amounts[name])!r}
assert os.path.exists("data/{name}.json") and not os.path.exists("data/{name}.ini")
'''
        files = {f"shop/{name}.py": module(name, after(name)), f"data/{name}.json": f"[\n{entries}\n]\n"}
        steps.append(Step(files, test, [f"data/{name}.ini"]))
    check = '''"""Checks the data of the shop."""

import glob


def files():
    return sorted(glob.glob("data/*.ini"))
'''
    test_check = '''
from shop import check

assert len(check.files()) == 6 and all(path.endswith(".json") for path in check.files())
'''
    steps.append(Step({"shop/check.py": check.replace("*.ini", "*.json")}, test_check))
    prompt = (
        "The data of the shop are JSON instead of INI files: data/order.json replaces data/order.ini and so on, each a list of "
        "objects with `name` and `amount` (a number). `load` of each module reads the new file, shop/check.py lists the new "
        "files, and the old files are removed. No entry is lost."
    )
    modules = {name: before(name) for name in NAMES}
    return Goal("ini_to_json", prompt, shop(modules, ini | {"shop/check.py": check}), steps)


def split():
    def code(name):
        return (
            f"def new_{name}(number):\n    return {{\"kind\": \"{name}\", \"number\": number}}\n\n\n"
            f"def label_{name}(entry):\n    return f\"{name} {{entry['number']:04}}\"\n"
        )

    def core(moved):
        lines = [f"from shop.{name} import label_{name}, new_{name}  # noqa: F401" for name in sorted(moved)]
        kept = [code(name) for name in NAMES if name not in moved]
        return '"""Entries of the shop."""\n' + "\n".join(["", *lines, ""] if lines else [""]) + "\n" + "\n\n".join(kept)

    steps = []
    for number, name in enumerate(NAMES, 1):
        test = f'''
import inspect

from shop import core, {name}

assert {name}.label_{name}({name}.new_{name}(7)) == "{name} 0007"
assert core.new_{name} is {name}.new_{name} and core.label_{name} is {name}.label_{name}
assert "def new_{name}" not in inspect.getsource(core)
'''
        files = {f"shop/{name}.py": module(name, code(name)), "shop/core.py": core(NAMES[:number])}
        steps.append(Step(files, test))
    table = '"""Constructors by kind."""\n\nfrom shop import core\n\nNEW = {name: getattr(core, f"new_{name}") for name in %s}\n'
    gold = '"""Constructors by kind."""\n\n' + imports() + (
        '\nNEW = {module.describe()[:-1]: getattr(module, f"new_{module.describe()[:-1]}") for module in MODULES}\n'
    )
    test_table = '''
import inspect

from shop import order, table

assert table.NEW["order"] is order.new_order and len(table.NEW) == 6
assert "core" not in inspect.getsource(table)
'''
    steps.append(Step({"shop/table.py": gold}, test_table))
    prompt = (
        "shop/core.py is split: `new_order` and `label_order` move to shop/order.py, and so on for each module. shop/core.py "
        "defines none of them and still has all names. shop/table.py uses the modules and not shop/core.py."
    )
    base = shop({name: "" for name in NAMES}, {"shop/core.py": core([]), "shop/table.py": table % repr(NAMES)})
    return Goal("split_core", prompt, base, steps)


def errors():
    def before(name):
        return f'''
def find(rows, number):
    """Returns the {name} with a number, or None."""
    for row in rows:
        if row["number"] == number:
            return row
    return None
'''

    def after(name):
        return f'''
from shop.errors import NotFound


def find(rows, number):
    """Returns the {name} with a number. Raises NotFound."""
    for row in rows:
        if row["number"] == number:
            return row
    raise NotFound("{name}", number)
'''

    def test(name):
        return f'''
from shop import {name}
from shop.errors import NotFound

assert {name}.find([{{"number": 3}}], 3) == {{"number": 3}}
try:
    {name}.find([{{"number": 3}}], 4)
except NotFound as error:
    assert (error.kind, error.number) == ("{name}", 4) and str(error) == "no {name} has the number 4"
else:
    raise AssertionError("nothing is raised")
'''

    error = '''"""Errors of the shop."""


class NotFound(LookupError):
    def __init__(self, kind, number):
        super().__init__(f"no {kind} has the number {number}")
        self.kind = kind
        self.number = number
'''
    test_error = '''
from shop.errors import NotFound

error = NotFound("order", 4)
assert isinstance(error, LookupError) and str(error) == "no order has the number 4"
'''
    app = '"""Finds entries of all kinds."""\n\n' + imports()
    base = app + '''

def find_all(rows, number):
    found = {module.describe(): module.find(rows, number) for module in MODULES}
    return {kind: row for kind, row in found.items() if row is not None}
'''
    gold = app.replace("from shop import", "from shop.errors import NotFound\nfrom shop import", 1) + '''

def find_all(rows, number):
    found = {}
    for module in MODULES:
        try:
            found[module.describe()] = module.find(rows, number)
        except NotFound:
            continue
    return found
'''
    test_app = '''
from shop import app, order
from shop.errors import NotFound

assert app.find_all([{"number": 1}], 2) == {}
assert len(app.find_all([{"number": 1}], 1)) == 6
try:
    order.find([], 1)
except NotFound:
    pass
else:
    raise AssertionError("nothing is raised")
'''
    modules, steps = each_module(before, after, test)
    steps.insert(0, Step({"shop/errors.py": error}, test_error))
    steps.append(Step({"shop/app.py": gold}, test_app))
    prompt = (
        "`find` of each module raises `NotFound` of a new module shop/errors.py instead of returning None. It is a LookupError "
        "with the attributes `kind` (such as \"order\") and `number`, and the text \"no order has the number 4\". `find_all` in "
        "shop/app.py still leaves out the kinds without a match."
    )
    return Goal("not_found_error", prompt, shop(modules, {"shop/app.py": base}), steps)


def cents():
    def before(name):
        return f'''
def price(text):
    """Returns the price of the {name} in a text such as `12.50`."""
    return float(text)


def add(prices):
    return sum(prices)


def show(price):
    return f"{{price:.2f}}"
'''

    def after(name):
        return f'''
def price(text):
    """Returns the price of the {name} in a text such as `12.50`, in cents."""
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("-").partition(".")
    return sign * (int(whole) * 100 + int(part.ljust(2, "0")[:2]))


def add(prices):
    return sum(prices)


def show(price):
    sign = "-" if price < 0 else ""
    return f"{{sign}}{{abs(price) // 100}}.{{abs(price) % 100:02}}"
'''

    def test(name):
        return f'''
from shop import {name}

assert [{name}.price(text) for text in ["12.50", "0.07", "3", "-1.5"]] == [1250, 7, 300, -150]
assert all(isinstance({name}.price(text), int) for text in ["12.50", "3"])
assert {name}.show({name}.add([{name}.price("0.10")] * 3)) == "0.30"
assert {name}.show(-105) == "-1.05"
'''

    app = '"""Sums over all modules."""\n\n' + imports()
    base = app + '''
LIMIT = 100.0


def exceeds(texts):
    return [module.describe() for module in MODULES if module.add(map(module.price, texts)) > LIMIT]
'''
    test_app = '''
from shop import app

assert app.LIMIT == 10_000 and isinstance(app.LIMIT, int)
assert app.exceeds(["100.01"]) and not app.exceeds(["60", "40.00"])
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"shop/app.py": base.replace("100.0", "10_000")}, test_app))
    prompt = (
        "Prices are integers in cents everywhere: `price` of each module parses a text such as \"12.50\", \"3\" or \"-1.5\" to "
        "cents, `show` prints cents with two digits, and `LIMIT` in shop/app.py is in cents."
    )
    return Goal("integer_cents", prompt, shop(modules, {"shop/app.py": base}), steps)


def records():
    def before(name):
        return f'''
def parse(line):
    """Returns the {name} in a line such as `7;screws;3`."""
    number, title, count = line.split(";")
    return {{"number": int(number), "title": title, "count": int(count)}}


def render({name}):
    return f"{{{name}['number']}};{{{name}['title']}};{{{name}['count']}}"
'''

    def after(name):
        return f'''
import dataclasses


@dataclasses.dataclass(frozen=True)
class {name.title()}:
    number: int
    title: str
    count: int


def parse(line):
    """Returns the {name} in a line such as `7;screws;3`."""
    number, title, count = line.split(";")
    return {name.title()}(int(number), title, int(count))


def render({name}):
    return f"{{{name}.number}};{{{name}.title}};{{{name}.count}}"
'''

    def test(name):
        return f'''
import dataclasses

from shop import {name}

entry = {name}.parse("7;screws;3")
assert entry == {name}.{name.title()}(7, "screws", 3) and {name}.render(entry) == "7;screws;3"
try:
    entry.count = 4
except dataclasses.FrozenInstanceError:
    pass
else:
    raise AssertionError("it can be changed")
'''

    app = '"""Stock of all kinds."""\n\n' + imports()
    base = app + '''

def stock(lines):
    return sum(module.parse(line)["count"] for module in MODULES for line in lines)


def renumber(module, line, number):
    entry = module.parse(line)
    entry["number"] = number
    return module.render(entry)
'''
    gold = app.replace("from shop import", "import dataclasses\n\nfrom shop import", 1) + '''

def stock(lines):
    return sum(module.parse(line).count for module in MODULES for line in lines)


def renumber(module, line, number):
    return module.render(dataclasses.replace(module.parse(line), number=number))
'''
    test_app = '''
from shop import app, order

assert isinstance(order.parse("1;a;2"), order.Order)
assert app.stock(["1;a;2", "2;b;3"]) == 30
assert app.renumber(order, "1;a;2", 9) == "9;a;2"
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"shop/app.py": gold}, test_app))
    prompt = (
        "`parse` of each module returns a frozen dataclass instead of a dictionary: `Order` in shop/order.py, `Invoice` in "
        "shop/invoice.py and so on, with the fields `number`, `title` and `count`. `render` takes one, and shop/app.py works "
        "with them."
    )
    return Goal("frozen_records", prompt, shop(modules, {"shop/app.py": base}), steps)


def log():
    def before(name):
        return f'''
def ship(rows):
    """Marks the {name}s as done."""
    for row in rows:
        print(f"{name} {{row['number']}} is done")
        row["done"] = True
    return len(rows)
'''

    def after(name):
        return f'''
def ship(rows, log=lambda level, text: None):
    """Marks the {name}s as done, and logs each."""
    for row in rows:
        log("info", f"{name} {{row['number']}} is done")
        row["done"] = True
    return len(rows)
'''

    def test(name):
        return f'''
import contextlib
import io

from shop import {name}

lines, printed = [], io.StringIO()
rows = [{{"number": 1}}, {{"number": 2}}]
with contextlib.redirect_stdout(printed):
    assert {name}.ship(rows, log=lambda level, text: lines.append((level, text))) == 2
    assert {name}.ship(rows) == 2
assert lines == [("info", "{name} 1 is done"), ("info", "{name} 2 is done")]
assert printed.getvalue() == "" and all(row["done"] for row in rows)
'''

    app = '"""Work of all modules."""\n\n' + imports()
    base = app + "\n\ndef work(rows):\n    return sum(module.ship(rows) for module in MODULES)\n"
    gold = app + (
        "\n\ndef work(rows, log=lambda level, text: None):\n"
        "    return sum(module.ship(rows, log) for module in MODULES)\n"
    )
    test_app = '''
from shop import app

lines = []
assert app.work([{"number": 1}], lambda level, text: lines.append(level)) == 6
assert lines == ["info"] * 6
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"shop/app.py": gold}, test_app))
    prompt = (
        "No module prints. `ship` of each module and `work` in shop/app.py take a function `log`, which is called with a level "
        "(\"info\") and the text that was printed before. Without it, nothing is logged."
    )
    return Goal("log_function", prompt, shop(modules, {"shop/app.py": base}), steps)


def dates():
    def before(name):
        return f'''
def due(row):
    """Returns the day on which the {name} is due."""
    return row["due"]


def is_late(row, today):
    day, month, year = row["due"].split(".")
    other = today.split(".")
    return (year, month, day) < (other[2], other[1], other[0])
'''

    def after(name):
        return f'''
import datetime


def due(row):
    """Returns the day on which the {name} is due."""
    return datetime.date.fromisoformat(row["due"])


def is_late(row, today):
    return due(row) < today
'''

    def test(name):
        return f'''
import datetime

from shop import {name}

row = {{"due": "2024-02-09"}}
assert {name}.due(row) == datetime.date(2024, 2, 9)
assert {name}.is_late(row, datetime.date(2024, 2, 10)) and not {name}.is_late(row, datetime.date(2024, 2, 9))
'''

    days = [("09.02.2024", "2024-02-09"), ("31.12.2023", "2023-12-31"), ("01.03.2024", "2024-03-01")]
    app = '''"""Reads the days of the shop."""

import json

from shop import order


def load(path="data/days.json"):
    with open(path) as file:
        return json.load(file)


def late(today):
    return [row["number"] for row in load() if order.is_late(row, today)]
'''
    rows = [json_row(number, old) for number, (old, _) in enumerate(days)]
    new_rows = [json_row(number, new) for number, (_, new) in enumerate(days)]
    test_data = '''
import json

with open("data/days.json") as file:
    assert [row["due"] for row in json.load(file)] == ["2024-02-09", "2023-12-31", "2024-03-01"]
'''
    test_app = '''
import datetime

from shop import app

assert app.late(datetime.date(2024, 2, 10)) == [0, 1]
assert app.earliest() == datetime.date(2023, 12, 31)
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"data/days.json": data_list(new_rows)}, test_data))
    steps.append(Step({"shop/app.py": app + "\n\ndef earliest():\n    return min(order.due(row) for row in load())\n"}, test_app))
    prompt = (
        "Days are datetime.date in the code and ISO 8601 in the data, such as 2024-02-09 instead of 09.02.2024: `due` and "
        "`is_late` of each module, and data/days.json. shop/app.py gets a function `earliest` that returns the first due day of "
        "its data."
    )
    return Goal("iso_dates", prompt, shop(modules, {"shop/app.py": app, "data/days.json": data_list(rows)}), steps)


def json_row(number, due):
    return f'  {{"number": {number}, "due": "{due}"}}'


def data_list(rows):
    return "[\n" + ",\n".join(rows) + "\n]\n"


def paging():
    def before(name):
        return f'''
def listed(rows):
    """Returns the numbers of the {name}s, the smallest first."""
    return sorted(row["number"] for row in rows)
'''

    def after(name):
        return f'''
def listed(rows, offset=0, limit=None):
    """Returns a page of the numbers of the {name}s, the smallest first."""
    if offset < 0 or (limit is not None and limit < 0):
        raise ValueError("offset and limit are not negative")
    end = None if limit is None else offset + limit
    return sorted(row["number"] for row in rows)[offset:end]
'''

    def test(name):
        return f'''
from shop import {name}

rows = [{{"number": number}} for number in [3, 1, 2, 5, 4]]
assert {name}.listed(rows) == [1, 2, 3, 4, 5]
assert {name}.listed(rows, offset=1, limit=2) == [2, 3] and {name}.listed(rows, limit=0) == []
assert {name}.listed(rows, offset=9) == []
for wrong in [{{"offset": -1}}, {{"limit": -1}}]:
    try:
        {name}.listed(rows, **wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
'''

    app = '"""Lists of all modules."""\n\n' + imports()
    base = app + "\n\ndef lists(rows):\n    return {module.describe(): module.listed(rows) for module in MODULES}\n"
    gold = app + (
        "\n\ndef lists(rows, offset=0, limit=None):\n"
        "    return {module.describe(): module.listed(rows, offset, limit) for module in MODULES}\n"
    )
    test_app = '''
from shop import app

rows = [{"number": number} for number in [3, 1, 2]]
assert set(map(tuple, app.lists(rows, limit=1).values())) == {(1,)}
assert set(map(tuple, app.lists(rows, offset=1).values())) == {(2, 3)}
'''
    modules, steps = each_module(before, after, test)
    steps.append(Step({"shop/app.py": gold}, test_app))
    prompt = (
        "`listed` of each module and `lists` in shop/app.py return a page: they take `offset`, by default 0, and `limit`, by "
        "default None for no limit. A negative value raises a ValueError."
    )
    return Goal("paging", prompt, shop(modules, {"shop/app.py": base}), steps)


def all_goals():
    functions = [rename, parameter, data_format, split, errors, cents, records, log, dates, paging]
    return [function() for function in functions]
