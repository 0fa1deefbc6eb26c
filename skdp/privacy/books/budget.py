# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy budgets shared by several fits."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any

from skdp.privacy.books.parts import leaves
from skdp.privacy.books.postgres import PostgresStore, is_url
from skdp.privacy.books.store import (
    NOTHING,
    BudgetStore,
    BudgetTerms,
    Chain,
    ChainState,
    Charge,
    FileStore,
    MemoryStore,
    Pair,
    Seen,
    exact,
    full_path,
    new_header,
    refuse_shared_noise,
    rounded_up,
    total,
    within,
)
from skdp.privacy.books.texts import a_kind, tags
from skdp.privacy.kernel.accounting import (
    BudgetError,
    check_choice,
    check_delta,
    check_epsilon,
    check_mu,
)
from skdp.privacy.kernel.ledger import Record

# How a shared budget prints, and its charges as tables.


_COLUMNS = [field.name for field in fields(Charge)]
#: not worth showing
_DEFAULTS = ("sum", "replace-one", "row", None)


def budget_text(terms: BudgetTerms, path: str | None, state: Iterable[str]) -> str:
    """Return a budget on one line: its limits and what was spent."""
    facts = {**terms._asdict(), "path": path}
    shown = [f"{k}={v!r}" for k, v in facts.items() if v not in _DEFAULTS]
    return f"PrivacyBudget({', '.join([*shown, *state])})"


def budget_html(text: str, charges: Iterable[Charge]) -> str:
    """Return a line and a table of charges for Jupyter."""
    # without the heads, which are long
    rows: list[Any] = [_COLUMNS, *([*asdict(charge).values()] for charge in charges)]
    table = "".join(f"<tr>{tags('td', row[:-1])}</tr>" for row in rows)
    return f"{tags('p', [text])}<table>{table}</table>"


_SUMS = ["charges", "epsilon", "delta", "first", "last"]
_TERMS = ["composition", "adjacency", "unit"]
#: tables of what was spent, by what they tell apart, and their columns
SPEND = {
    "charge": ["budget", "position", *_COLUMNS],
    "model": ["budget", "model", *_SUMS],
    "person": ["budget", "person", *_SUMS],
    "budget": [
        "budget", *_SUMS, "epsilon_limit", "delta_limit", *_TERMS, "spent_epsilon", "spent_delta",
    ],
}  # fmt: skip


def spend_rows(budget: "PrivacyBudget", by: str) -> list[list[Any]]:
    """Return the rows of a table of spending, as in the views of a database."""
    state = budget._chain.read()
    charges = state.charges()
    if by == "charge":
        return [[budget.name, i, *asdict(each).values()] for i, each in enumerate(charges, 1)]
    if by == "budget":
        epsilon, delta, *kinds = state.terms
        spent = state.terms.spent(state.spent)
        return [[budget.name, *_sums(charges), epsilon, delta, *kinds, *spent]]
    groups: dict[str, list[Charge]] = {}
    for each in charges:
        groups.setdefault(each.label if by == "model" else each.person, []).append(each)
    return [[budget.name, key, *_sums(ours)] for key, ours in sorted(groups.items())]


def _sums(charges: Collection[Charge]) -> list[Any]:
    epsilon, delta = (
        rounded_up(sum((exact(getattr(each, name)) for each in charges), Fraction(0)))
        for name in ("epsilon", "delta")
    )
    times = [each.time for each in charges]
    return [len(charges), epsilon, delta, min(times, default=""), max(times, default="")]


def heads_of(source: Any) -> tuple[str, ...]:
    """Return the heads of the charges of a fit.

    Parameters
    ----------
    source : str, Charge, Ledger or estimator
        A head, or an object with one: a charge, a ledger, a fitted estimator or pipeline.

    Returns
    -------
    heads : tuple of str
        At least one.

    Raises
    ------
    ValueError
        If there is none: not fitted, or not charged to a budget.
    """
    if isinstance(source, str | Charge):
        found: tuple[str, ...] = (source if isinstance(source, str) else source.head,)
    elif isinstance(source, Record):
        found = source.budget_heads
    elif isinstance(ledger := getattr(source, "ledger_", None), Record):
        found = ledger.budget_heads
    else:
        ledgers = [getattr(leaf, "ledger_", None) for _, leaf in leaves(source)]
        known = [ledger for ledger in ledgers if isinstance(ledger, Record)]
        found = tuple(head for ledger in known for head in ledger.budget_heads)
    if not any(found):
        raise ValueError(
            "head must be a head, or have one: what was fitted with a budget in a file or in "
            f"memory, its ledger, or a charge; got {a_kind(source)} without."
        )
    return tuple(dict.fromkeys(found))


def _all_held(state: ChainState, sources: Any) -> bool:
    """Return whether a chain has the charges of all given sources."""
    one = isinstance(sources, str | Charge | Record) or not isinstance(sources, list | tuple)
    for source in [sources] if one else sources:
        seen = [Seen.of(head) for head in heads_of(source)]
        # a pipeline may have been charged to several budgets
        ours = [each for each in seen if each.identity == state.identity]
        if not (ours and all(map(state.holds, ours))):
            return False
    return True


def store_for(path: Any) -> FileStore | PostgresStore:
    """Return the store at a path or URL, or raise a ValueError."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    return PostgresStore(path) if is_url(path) else FileStore(full_path(path))


class PrivacyBudget:
    """A privacy budget shared by several fits; a fit that would exceed it reads no row.

    Pass the same object as `budget` to any number of estimators. Each fit is charged its whole
    price at once, before it reads a row, and there are no refunds. It is a privacy filter
    (:ref:`odometers-and-filters`).

    Parameters
    ----------
    epsilon : float
        Total epsilon for all fits, in nats, greater than 0.
    delta : float, default=0.0
        Total delta for all fits, in [0, 1); greater than 0 for ``composition="gaussian"``.
    composition : {"sum", "gaussian"}, default="sum"
        Rule of addition of prices. "sum": the sums of epsilon and of delta stay within the totals.
        "gaussian": half of `delta` is reserved, and converts `epsilon` to a Gaussian-DP parameter
        mu. The sum of the squared parameters of fits stays within its square, and the other half
        of `delta` is for fits on random batches or with thresholds. Better for many fits.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Relation of neighbouring data sets. Fits with another adjacency are refused; local reports
        count under any adjacency.
    unit : {"row", "group"}, default="row"
        Protected unit: one row, or all rows of one group, such as a person or a client.
    path : str or path-like, default=None
        A file, to share the budget between processes and with later sessions; or the URL of a
        PostgreSQL database, ``"postgresql://user@host/database?budget=name"``, for several
        machines (:ref:`budgets-server`). It is created if it does not exist. None keeps the budget
        in memory, for the threads of this process.
    head : str, Charge, Ledger, fitted estimator, or list of these, default=None
        Heads of earlier fits. Then the file (or database) must exist and contain their charges; a
        file that was restored, edited or replaced since then does not. None accepts any file.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    BudgetError
        If the file or database contains a budget with other parameters, is unusable, or lacks a
        charge of `head`; or if psycopg is missing.

    See Also
    --------
    privacy_spent : What fitted estimators have spent, composed as tightly as it gets.

    Notes
    -----
    `copy`, `deepcopy` and scikit-learn's `clone` return the object itself, so every copy of an
    estimator shares it. With `path` it can be pickled: the pickle has the path, the identity of
    the file and the last known head, and a URL without its password. Without `path`, pickling
    raises.

    *Charges form a chain.* Each has a hash of the terms of the budget and of all charges up to it.
    At every use all charges are read and checked, and the price spent is computed as their sum: no
    total is stored. An object remembers its last known charge, and refuses a chain without it.
    Every fit keeps the head of the chain in ``ledger_.budget_heads``, so any model can reveal
    later (`head`, `contains`) that the file was restored to an earlier state. Charges that nobody
    has seen can be removed unnoticed, and anybody who controls the file and all models can forge
    another chain: it contains no secret.

    Two fits with one seed share their noise: the second one is refused. Give every seeded fit its
    own seed.

    *Privacy.* All fits together are (epsilon, delta)-differentially private, even if each fit and
    its price depend on the results of earlier fits: Proposition 74 of the :ref:`proofs
    <proofs_selection>` for both rules. Prices are counted as the decimals printed by Python.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan (2016), "Privacy Odometers and Filters".
    Smith and Thakurta (2022), "Fully Adaptive Composition for Gaussian Differential Privacy".
    Koskela, Tobaben and Honkela (2023), "Individual Privacy Accounting with Gaussian
    Differential Privacy".
    Whitehouse, Ramdas, Rogers and Wu (2023), "Fully-Adaptive Composition in Differential
    Privacy".

    Examples
    --------
    >>> from skdp import DPMean, DPQuantile, PrivacyBudget
    >>> X = [[0.1], [0.2], [0.3], [0.4]]
    >>> budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> options = {"mechanism": "gaussian", "data_norm": 1.0}
    >>> mean = DPMean(epsilon=0.7, delta=1e-6, budget=budget, **options).fit(X)
    >>> median = DPQuantile(epsilon=0.3, budget=budget, bounds=(-1.0, 1.0)).fit(X)
    >>> budget
    PrivacyBudget(epsilon=1.0, delta=1e-06, spent=(1.0, 1e-06), charges: 2)
    >>> median.fit(X)
    Traceback (most recent call last):
    ...
    skdp.exceptions.BudgetError: the shared budget of epsilon=1.0, delta=1e-06 has (0.0, 0.0)...
    """

    _chain: Chain

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        composition: str = "sum",
        adjacency: str = "replace-one",
        unit: str = "row",
        path: str | os.PathLike[str] | None = None,
        head: Any = None,
    ) -> None:
        terms = BudgetTerms.checked(epsilon, delta, composition, adjacency, unit)
        if path is None:
            if head is not None:
                raise ValueError("head must be None without path: a new budget has no charges.")
            self._set(Chain(MemoryStore(new_header(terms))), terms)
            return
        store = store_for(path)
        if head is None:
            store.create(new_header(terms))
        found = self._found(store, head)
        for name, theirs in found._asdict().items():
            if (ours := getattr(terms, name)) != theirs:
                raise BudgetError(
                    f"the privacy budget {store.path!r} has {name}={theirs!r}; got {ours!r}. "
                    "PrivacyBudget.open(path) takes it as it is."
                )

    def _set(self, chain: Chain, terms: BudgetTerms) -> "PrivacyBudget":
        self._chain, self._terms, self._limits = chain, terms, terms.limits
        self.epsilon, self.delta, self.composition, self.adjacency, self.unit = terms
        return self

    def _found(self, store: BudgetStore, head: Any) -> BudgetTerms:
        """Adopt the contents of a store, if it has the charges of a head."""
        chain = Chain(store)
        state = chain.read()
        if head is not None and not _all_held(state, head):
            raise chain.error(
                "lacks a charge that head has: it was put back to an earlier state, edited, or "
                "replaced"
            )
        self._set(chain, state.terms)
        return state.terms

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | BudgetStore, *, head: Any = None
    ) -> "PrivacyBudget":
        """Return the budget of an existing file or database; none is created.

        Parameters
        ----------
        path : str, path-like or BudgetStore
            The file, the URL, or another store of the chain of charges.
        head : str, Charge, Ledger, fitted estimator, or list of these, default=None
            Heads of earlier fits; the file must contain their charges.

        Returns
        -------
        budget : PrivacyBudget
            Budget with the parameters in the file.

        Raises
        ------
        BudgetError
            If the file is unusable, or lacks a charge of `head`.
        """
        budget = cls.__new__(cls)
        budget._found(path if isinstance(path, BudgetStore) else store_for(path), head)
        return budget

    def charge(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        mu: float | None = None,
        adjacency: str,
        unit: str = "row",
        label: str = "",
        stream: str | None = None,
    ) -> Charge:
        """Charge a price to the budget, or raise without a charge.

        Parameters
        ----------
        epsilon, delta : float
            Price of a whole fit.
        mu : float, default=None
            Gaussian-DP parameter of the fit, if any.
        adjacency, unit : str
            Adjacency and unit of the price.
        label : str, default=""
            Name of the charged estimator.
        stream : str, default=None
            Identity of the seeded noise of the fit; None for noise of the operating system.

        Returns
        -------
        charge : Charge
            Recorded charge; for a file or a database it is already on the disk.

        Raises
        ------
        ValueError
            If a number is out of range.
        BudgetError
            If less is left, if adjacency or unit differ, if a fit with the same seeded noise was
            charged before, or if the file is unusable, was restored to an earlier state, or was
            edited. If the connection to a database is lost during the charge for more than half a
            minute, the charge may count as spent, and the error says so.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        mu = None if mu is None else check_mu(mu)
        asked, ours = label or "a fit", self._terms
        if adjacency not in (ours.adjacency, "local") or unit != ours.unit:
            raise BudgetError(
                f"the shared budget is for adjacency={ours.adjacency!r} and unit={ours.unit!r}; "
                f"{asked} has {adjacency!r} and {unit!r}. Such prices cannot be added. {NOTHING}"
            )
        charge = Charge.now(label, epsilon, delta, mu, adjacency, unit, stream)
        added = self._chain.add(charge, ours.cost(epsilon, delta, mu), self._limits)
        if isinstance(added, Charge):
            return added
        raise self._refusal(added, f"{asked} asks for epsilon={epsilon!r}, delta={delta!r}")

    def check(
        self, epsilon: float | None = None, delta: float = 0.0, *, stream: str | None = None
    ) -> None:
        """Raise if a charge is certain to be refused; nothing is recorded or reserved.

        Parameters
        ----------
        epsilon : float, default=None
            Epsilon of the charge; None if it is not known yet.
        delta : float, default=0.0
            Lower bound on its delta.
        stream : str, default=None
            Identity of its noise, if that is seeded.

        Raises
        ------
        BudgetError
            If a fit with the same seeded noise was charged before. With ``composition="sum"``, if
            the charge exceeds the rest, or nothing is left. With "gaussian" only if nothing is
            left, because a charge may have any `mu`, however small.
        """
        epsilon = None if epsilon is None else check_epsilon(epsilon)
        delta, least = check_delta(delta), (Fraction(0), Fraction(0))
        if self._terms.composition == "sum":
            least = self._terms.cost(epsilon or 0.0, delta)
        found = self._chain.read()
        refuse_shared_noise(stream, found.streams)
        spent = found.spent
        if spent[0] >= self._limits[0] or not within(total(spent, least), self._limits):
            price = "more" if epsilon is None else f"epsilon={epsilon!r}"
            raise self._refusal(spent, f"a fit asks for {price}")

    def _refusal(self, spent: Pair, asked: str) -> BudgetError:
        ours = self._terms
        return BudgetError(
            f"the shared budget of epsilon={ours.epsilon!r}, delta={ours.delta!r} has "
            f"{ours.left(spent)!r} left; {asked}. {NOTHING}"
        )

    @property
    def spent(self) -> tuple[float, float]:
        """The (epsilon, delta) of all charges so far, together."""
        return self._terms.spent(self._chain.read().spent)

    @property
    def remaining(self) -> tuple[float, float]:
        """Largest (epsilon, delta) for one more charge without a `mu`."""
        return self._terms.left(self._chain.read().spent)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, in order."""
        return self._chain.read().charges()

    @property
    def head(self) -> str:
        """Present end of the chain of charges, for a later `open` or `contains`."""
        return self._chain.read().seen.head

    def contains(self, *sources: Any) -> bool:
        """Return whether this budget has the charges of all given fits.

        Parameters
        ----------
        *sources : str, Charge, Ledger or fitted estimator
            Heads of fits, or objects with one. Of several heads, as in a pipeline, the heads of
            this budget count.

        Returns
        -------
        contained : bool
            False if the file was restored to a state before one of them, edited, or replaced, or
            if a fit was charged to another budget.

        Raises
        ------
        ValueError
            If a source has no head: not fitted, or not charged to a budget.
        """
        return _all_held(self._chain.read(), list(sources))

    @property
    def path(self) -> str | None:
        """Full path of the file, or the URL without its password; None in memory."""
        return getattr(self._chain.store, "path", None)

    @property
    def name(self) -> str:
        """Name in tables: the name in a database, or of the file; empty in memory."""
        store = self._chain.store
        return str(getattr(store, "budget", os.path.basename(self.path or "")))

    def to_frame(self, by: str | None = None) -> Any:
        """Return the spending as a pandas DataFrame.

        Parameters
        ----------
        by : {"model", "person", "budget"}, default=None
            None has one row per charge. Otherwise prices are summed per model (the label of its
            charges), per person, or in total. With ``composition="gaussian"`` such a sum exceeds
            the joint price, which is `spent_epsilon` and `spent_delta` of "budget".

        Returns
        -------
        frame : pandas.DataFrame of shape (n_rows, n_columns)
            With `epsilon` in nats, and `first` and `last`, the times of charges.
        """
        import pandas as pd

        if by is None:
            return pd.DataFrame([asdict(charge) for charge in self.charges], columns=_COLUMNS)
        check_choice("by", by, [*SPEND][1:])
        return pd.DataFrame(spend_rows(self, by), columns=SPEND[by])

    def __repr__(self) -> str:
        try:
            found = self._chain.read()
            spent = self._terms.spent(found.spent)
            state = [f"spent={spent!r}", f"charges: {len(found.entries)}"]
        except BudgetError as error:
            state = [str(error)]
        return budget_text(self._terms, self.path, state)

    def _repr_html_(self) -> str:
        charges: tuple[Charge, ...] = ()
        with suppress(BudgetError):
            charges = self.charges
        return budget_html(repr(self), charges)

    def __copy__(self) -> "PrivacyBudget":
        return self

    def __deepcopy__(self, memo: Any) -> "PrivacyBudget":
        return self

    def __sklearn_clone__(self) -> "PrivacyBudget":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._chain.store, MemoryStore):
            raise BudgetError(
                "a budget in memory cannot be pickled, or sent to another process: give path= to "
                "share it between processes (joblib, GridSearchCV with n_jobs=2), or set "
                "budget=None before a fitted estimator is saved."
            )
        return _reconnect, (self._chain.store, self._chain.head, self._terms)


def _reconnect(store: BudgetStore, head: str, terms: BudgetTerms) -> PrivacyBudget:
    # the store is not looked at: a model can be loaded where its budget is not
    return PrivacyBudget.__new__(PrivacyBudget)._set(Chain(store, head), terms)
