import json


def load(line):
    """A user from a line of JSON, of this version or the one before."""
    record = json.loads(line)
    if record["version"] == 1:
        return {"id": record["id"], "email": record["mail"]}
    if record["version"] == 2:
        return {"id": record["id"], "email": record["email"]}
    raise ValueError(f"unknown version: {record['version']}")
