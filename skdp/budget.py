# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Look at shared budgets from a shell: ``python -m skdp.budget show|verify|export|tables``.

For whoever answers for the data, with the rights of a reader: nothing here charges anything. A
place is the file of a budget, or the URL of a database: without ``budget=``, of all that it has.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from skdp.exceptions import BudgetError
from skdp.privacy import PrivacyBudget
from skdp.privacy.books.budget import SPEND, spend_rows
from skdp.privacy.books.postgres import TABLES, is_url, stores_at

__all__: list[str] = []


def _budgets(place: str, head: Sequence[str] = ()) -> list[PrivacyBudget]:
    """Return all budgets of a place, read and checked from their first charge."""
    stores = stores_at(place) if is_url(place) else [place]
    if head and len(stores) != 1:
        raise ValueError(f"--head is for one budget; {len(stores)} are there. Add ?budget=name.")
    return [PrivacyBudget.open(store, head=list(head) or None) for store in stores]


def _shown(value: Any) -> str:
    """Return text without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(value))


def _show(arguments: argparse.Namespace) -> None:
    for budget in _budgets(arguments.place):
        print(_shown(budget))
        for by in arguments.by or ("model", "person"):
            table = [SPEND[by], *spend_rows(budget, by)]
            # the same for all rows
            cells = [[_shown(cell) for cell in row[1:]] for row in table]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            print()
            for row in cells:
                line = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                print(" ", "  ".join(line).rstrip())
        print()


def _verify(arguments: argparse.Namespace) -> None:
    for budget in _budgets(arguments.place, arguments.head):
        print(f"sound: {_shown(budget)}")
        print(f"head:  {budget.head}")


def _harmless(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in {*"=+-@\t\r"} else cell


def _write_table(rows: list[list[Any]], columns: list[str], form: str, file: TextIO) -> None:
    if form == "json":
        json.dump([dict(zip(columns, row, strict=True)) for row in rows], file, indent=2)
        file.write("\n")
    else:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns, *([_harmless(cell) for cell in row] for row in rows)])


def _export(arguments: argparse.Namespace) -> None:
    by = arguments.by
    rows = [row for budget in _budgets(arguments.place) for row in spend_rows(budget, by)]
    if arguments.output is None:
        _write_table(rows, SPEND[by], arguments.format, sys.stdout)
        return
    with open(arguments.output, "w", encoding="utf-8", newline="") as file:
        _write_table(rows, SPEND[by], arguments.format, file)


def _tables(arguments: argparse.Namespace) -> None:
    print(TABLES.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m skdp.budget", description="Look at shared privacy budgets."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    place: dict[str, Any] = {
        "metavar": "PLACE",
        "help": "a file, or postgresql://user@host/database?budget=name; without a budget all of "
        "the database. Give a password in PGPASSWORD or a password file",
    }
    show = commands.add_parser("show", help="what budgets allow, and who has spent what")
    show.set_defaults(run=_show)
    show.add_argument("place", **place)
    show.add_argument("--by", action="append", choices=SPEND, help="a table; may be repeated")
    verify = commands.add_parser("verify", help="check all hashes and sums; exit with 1 if bad")
    verify.set_defaults(run=_verify)
    verify.add_argument("place", **place)
    verify.add_argument(
        "--head", action="append", default=[],
        help="of a charge that must be there, as in ledger_.budget_heads; may be repeated",
    )  # fmt: skip
    export = commands.add_parser("export", help="a table as CSV or JSON")
    export.set_defaults(run=_export)
    export.add_argument("place", **place)
    export.add_argument("--by", default="charge", choices=SPEND)
    export.add_argument("--format", default="csv", choices=("csv", "json"))
    export.add_argument("--output", metavar="FILE", help="instead of the standard output")
    tables = commands.add_parser("tables", help="the SQL that makes schema, roles and views")
    tables.set_defaults(run=_tables)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return 0, or 1 if a budget is unsound or cannot be read."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (BudgetError, ValueError, OSError) as error:
        print(f"error: {_shown(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
