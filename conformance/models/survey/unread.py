"""What a class has and saves, and the reader does not read: of this value it changes nothing."""
import json
import re

import compare  # where the reader is
from posenc.models.members import Refused
from posenc.models.model import read_json
from posenc.models.types import types

MOST = 12  # members of a type


def unread_of(cls, row):
    """{member: value} of a type that is read by its name alone: what its file is rejected for as its class saves it."""
    try:
        saved = json.loads(cls().to_json_string())
    except Exception:
        return {}
    name, found = cls.model_type, {}
    before = types()[name]
    for _ in range(MOST):
        types()[name] = before._replace(unread=found)
        try:
            read_json(json.dumps(saved))
            break
        except Refused as why:
            key = re.match(r"(\w+)(?: in \w+)? is ", str(why))
            read = key and row.members.get(key[1], "ignored") != "ignored" and row.encoding != "composite"
            if not key or read or key[1] not in saved or key[1] in found or isinstance(saved[key[1]], dict):
                found = {}
                break
            found = {**found, key[1]: saved[key[1]]}
    types()[name] = before
    return found
