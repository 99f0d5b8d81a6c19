import json


def dump(user):
    """A user as a line of JSON."""
    return json.dumps({
        "id": user["id"],
        "mail": user["email"].lower(),
        "version": 1,
    })
