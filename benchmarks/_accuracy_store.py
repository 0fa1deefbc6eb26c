# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Results of a long run, one line of JSON each, so that it can be interrupted and taken up."""

import json
from pathlib import Path

__all__ = ["Store", "read"]


def read(file):
    """Return the records of a file, or an empty list."""
    file = Path(file)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line) for line in lines]


class Store:
    """A file of records, of which each has a key that is measured once.

    Parameters
    ----------
    file : path-like
        Where the lines are; it need not exist.
    """

    def __init__(self, file):
        self.file = Path(file)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._known = {self._key(record["key"]): record for record in read(self.file)}

    @staticmethod
    def _key(parts):
        return json.dumps(parts)

    def get(self, *key):
        """Return the record of a key, or None."""
        return self._known.get(self._key(list(key)))

    def add(self, *key, **values):
        """Store a record; return it."""
        record = {"key": list(key), **values}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        self._known[self._key(record["key"])] = record
        return record
