# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A shared budget that cannot be turned back: its chain of charges, in a file and on a server."""

import hashlib
import json
import pickle
import time
from contextlib import suppress

import pytest
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPMean,
    DPQuantile,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    PrivacyBudget,
    PrivUnitPrivatizer,
    privacy_spent,
)
from skdp.exceptions import BudgetError
from skdp.privacy import BudgetStore
from skdp.privacy.books.store import Chain, MemoryStore, new_header

X = [[0.1], [0.2], [0.3], [0.4]]
HERE = {"adjacency": "replace-one"}


@pytest.fixture
def path(place):
    return place.path


def fit(budget, epsilon=0.1):
    return DPMean(
        epsilon=epsilon, delta=0.0, mechanism="laplace", budget=budget, data_norm=1.0
    ).fit(X)


def refused(budget):
    """Assert that a budget notices what happened to its file, at every use."""
    for use in (
        lambda: budget.charge(0.01, **HERE),
        lambda: budget.check(0.01),
        lambda: budget.spent,
        lambda: budget.remaining,
        lambda: budget.charges,
        lambda: budget.head,
        lambda: fit(budget, 0.01),
    ):
        with pytest.raises(BudgetError) as error:
            use()
        assert "Nothing was charged, and no row was read" in str(error.value)


def entries(place):
    return [json.loads(entry) for entry, _ in place.content()[1]]


def rewritten(place, change, header=None):
    """Make all charges of a budget anew, as a forger would: the chain is sound in itself."""
    links, texts = [], [json.dumps(facts) for facts in change(entries(place))]
    text = json.dumps({**json.loads(place.content()[0]), **(header or {})})
    digest = chained("", text)
    for each in texts:
        digest = chained(digest, each)
        links.append((each, digest))
    place.put((text, links))


def chained(digest, text):
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


# -- attacks ---------------------------------------------------------------------------------


def test_five_nightly_restores_do_not_spend_five_times(place, path):
    PrivacyBudget(1.0, path=path)
    saved = place.content()
    released, spent = [], 0.0
    for _ in range(5):
        place.put(saved)
        with suppress(BudgetError):
            night = PrivacyBudget.open(path, head=released or None)
            released.append(fit(night, 1.0))
            spent += 1.0
    assert spent == 1.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_later", [0, 1, 2, 9])
def test_a_live_object_notices_an_old_copy_after_any_number_of_later_charges(place, path, n_later):
    live = PrivacyBudget(1.0, path=path)
    live.charge(0.1, **HERE)
    saved = place.content()
    model, sent = fit(live, 0.7), pickle.dumps(live)
    place.put(saved)
    other = PrivacyBudget.open(path)
    for _ in range(n_later):
        other.charge(0.05, **HERE)
    refused(live)
    refused(pickle.loads(sent))
    assert not other.contains(model)
    for make in (PrivacyBudget.open, lambda path, head: PrivacyBudget(1.0, path=path, head=head)):
        with pytest.raises(BudgetError, match="lacks a charge"):
            make(path, head=model)


def test_an_object_that_only_looked_on_notices_an_old_copy(place, path):
    live = PrivacyBudget(1.0, path=path)
    saved = place.content()
    fit(PrivacyBudget.open(path), 0.7)
    assert live.spent == (0.7, 0.0)
    place.put(saved)
    fit(PrivacyBudget.open(path), 0.7)
    refused(live)


def test_a_deleted_budget_is_noticed_whoever_makes_it_anew(place, path):
    live = PrivacyBudget(1.0, path=path)
    model = fit(live, 1.0)
    place.remove()
    for make in (PrivacyBudget.open, lambda path, head: PrivacyBudget(1.0, path=path, head=head)):
        with pytest.raises(BudgetError, match="has vanished"):
            make(path, head=model)
        assert not place.exists()
    refused(live)
    anew = PrivacyBudget(1.0, path=path)
    for _ in range(3):
        fit(anew)
    refused(live)
    assert not anew.contains(model)
    with pytest.raises(BudgetError, match="lacks a charge"):
        PrivacyBudget.open(path, head=model)


def minus_five(found):
    return [{**found[0], "epsilon": -5.0}, *found[1:]]


def cheaper(found):
    return [{**found[0], "epsilon": 0.01}, *found[1:]]


EDITS = {
    "cheaper": cheaper,
    "a price below 0": minus_five,
    "no price": lambda found: [{**found[0], "epsilon": None}, *found[1:]],
    "another unit": lambda found: [{**found[0], "unit": "group"}, *found[1:]],
    "first removed": lambda found: found[1:],
    "middle removed": lambda found: [found[0], *found[2:]],
    "last removed": lambda found: found[:-1],
    "all removed": lambda found: [],
    "other order": lambda found: found[::-1],
    "another label": lambda found: [{**found[0], "label": "nobody"}, *found[1:]],
    "another noise": lambda found: [{**found[0], "stream": "ab" * 16}, *found[1:]],
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_a_chain_that_was_made_up_anew_is_noticed_by_who_saw_the_old_one(place, path, change):
    live = PrivacyBudget(1.0, path=path)
    models = [fit(live, price) for price in (0.3, 0.2, 0.1)]
    rewritten(place, change)
    # some make no sense in themselves
    with suppress(BudgetError):
        other = PrivacyBudget.open(path)
        for _ in range(4):
            other.charge(0.01, **HERE)
    refused(live)
    with pytest.raises(BudgetError):
        PrivacyBudget.open(path, head=models)


def replaced(row, column, old, new):
    """Return a change of content that leaves all other hashes as they are."""

    def change(header, links):
        link = list(links[row])
        link[column] = link[column].replace(old, new)
        return header, [*links[:row], tuple(link), *links[row + 1 :]]

    return change


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "change",
    [
        replaced(0, 0, "0.3", "0.0001"),
        replaced(0, 0, "0.3", "-5.0"),
        lambda header, links: (header, [links[0], (links[1][0], "ab"), links[2]]),
        lambda header, links: (header, links[1:]),
        lambda header, links: (header, links[::2]),
        lambda header, links: (header, [*links[1:], links[0]]),
        lambda header, links: (header.replace("1.0", "99.0"), links),
    ],
)
def test_an_edit_that_leaves_the_hashes_is_noticed_by_everybody(place, path, change):
    live = PrivacyBudget(1.0, path=path)
    for price in (0.3, 0.2, 0.1):
        fit(live, price)
    place.put(change(*place.content()))
    refused(live)
    with pytest.raises(BudgetError, match="is damaged"):
        PrivacyBudget.open(path)


def test_there_is_no_stored_total_that_could_be_edited(place, path):
    live = PrivacyBudget(1.0, path=path)
    live.charge(0.5, **HERE)
    header, links = place.content()
    assert [facts["epsilon"] for facts in entries(place)] == [0.5]
    assert f"{header}{links}".count("0.5") == 1


def test_raised_limits_are_noticed_even_before_the_first_charge(place, path):
    live = PrivacyBudget(1.0, path=path)
    rewritten(place, lambda found: found, {"epsilon": 99.0})
    refused(live)


def test_more_charges_than_the_budget_allows_are_no_budget(place, path):
    live = PrivacyBudget(1.0, path=path)
    live.charge(0.6, **HERE)
    rewritten(place, lambda found: found * 3)
    refused(live)
    with pytest.raises(BudgetError, match="is damaged"):
        PrivacyBudget.open(path)


def test_two_copies_that_are_both_used_do_not_contain_each_other(place, path):
    one = PrivacyBudget(1.0, path=path)
    two = PrivacyBudget.open(place.copy().path)
    models = [fit(one, 0.9), fit(two, 0.9)]
    assert [budget.contains(model) for budget in (one, two) for model in models] == [
        True,
        False,
        False,
        True,
    ]


# -- who may go on ---------------------------------------------------------------------------


def test_others_may_charge_the_same_file(path):
    live = PrivacyBudget(1.0, path=path)
    first = fit(live)
    other = PrivacyBudget.open(path, head=first)
    for budget in (other, live, other, other, live):
        fit(budget)
    assert live.spent == other.spent == (0.6, 0.0)
    assert live.head == other.head == live.charges[-1].head
    found = PrivacyBudget(1.0, path=path, head=[first, live.head, live.charges[2]])
    assert found.charges == live.charges
    assert [charge.head.split(":")[1] for charge in live.charges] == list("123456")


def test_what_was_spent_is_added_up_from_the_charges(path):
    live = PrivacyBudget(1.0, 1e-6, composition="gaussian", path=path)
    for mu in (None, 0.01, 0.02):
        live.charge(0.1, 1e-9, mu=mu, **HERE)
    for again in (PrivacyBudget.open(path), pickle.loads(pickle.dumps(live))):
        assert (again.spent, again.remaining) == (live.spent, live.remaining)


# -- heads -----------------------------------------------------------------------------------


def test_every_way_to_be_charged_leaves_a_head():
    budget = PrivacyBudget(20.0, 1e-3, adjacency="zero-out")
    given = {"budget": budget, "adjacency": "zero-out", "random_state": None}
    y = [0, 1, 0, 1]
    mean = DPMean(**given).fit(X)
    privatizer = PrivUnitPrivatizer(epsilon=4.0, new_rows="randomise", budget=budget).fit(X)
    privatizer.transform(X)
    privatizer.transform(X)
    search = DPGridSearchCV(
        DPQuantile(adjacency="zero-out", bounds=(-1.0, 1.0)),
        {"quantile": [0.5, 0.6]},
        scoring=skdp_scorer(),
        budget=budget,
    ).fit(X, y)
    assert mean.ledger_.budget_heads == (budget.charges[0].head,)
    assert privatizer.ledger_.budget_heads == tuple(c.head for c in budget.charges[1:3])
    assert search.ledger_.budget_heads == (budget.charges[3].head,)
    assert search.best_estimator_.ledger_.budget_heads == search.ledger_.budget_heads
    assert budget.contains(mean, privatizer, search, search.best_estimator_, budget.head)
    clients = PrivacyBudget(2.0, 1e-3, unit="group")
    model = FederatedDPLogisticRegression(budget=clients).fit(X * 4, y * 4, groups=y * 4)
    assert clients.contains(model)
    assert not budget.contains(model)
    both = mean.ledger_ + search.ledger_
    assert both.budget_heads == mean.ledger_.budget_heads + search.ledger_.budget_heads
    assert budget.contains(both)
    assert set(privacy_spent(mean, search).ledger.budget_heads) == set(both.budget_heads)
    assert DPMean(data_norm=1.0).fit(X).ledger_.budget_heads == ()


def skdp_scorer():
    from skdp.model_selection import RowScorer

    def closeness(estimator, X, y):
        return [0.0] * len(X)

    return RowScorer(closeness, bounds=(0.0, 1.0))


def test_a_pipeline_shows_what_its_steps_were_charged(path):
    budget = PrivacyBudget(3.0, 1e-5, path=path)
    pipe = make_pipeline(
        DPStandardScaler(epsilon=0.5, delta=1e-7, budget=budget), DPMean(data_norm=1.0)
    )
    pipe.set_params(dpmean__budget=PrivacyBudget(3.0, 1e-5)).fit(X)
    assert budget.contains(pipe)
    assert PrivacyBudget.open(path, head=pipe).head == budget.head
    assert not PrivacyBudget(1.0).contains(pipe)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "head", ["", "abc", "a:b:c", "a:1", 7, DPMean(data_norm=1.0), DPMean(data_norm=1.0).fit(X)]
)
def test_what_has_no_head_is_refused(path, head):
    budget = PrivacyBudget(1.0, path=path)
    with pytest.raises(ValueError, match="head must"):
        PrivacyBudget.open(path, head=head)
    with pytest.raises(ValueError, match="head must"):
        budget.contains(head)
    with pytest.raises(ValueError, match="head must be None without path"):
        PrivacyBudget(1.0, head="a:1:b")


def test_a_position_beyond_the_end_is_not_contained():
    budget = PrivacyBudget(1.0)
    identity, _, digest = budget.head.split(":")
    assert budget.contains(f"{identity}:0:{digest}")
    assert not budget.contains(f"{identity}:1:{digest}")
    assert not budget.contains(f"{'0' * 32}:0:{digest}")


def test_a_table_of_charges_has_heads():
    budget = PrivacyBudget(1.0)
    budget.charge(0.5, **HERE)
    assert list(budget.to_frame()["head"]) == [budget.head]
    assert budget.head not in budget._repr_html_()


# -- noise -----------------------------------------------------------------------------------


def seeded(budget, seed=5):
    return DPMean(
        epsilon=0.1,
        delta=0.0,
        mechanism="laplace",
        data_norm=1.0,
        random_state=seed,
        budget=budget,
    ).fit(X)


def test_the_identity_of_noise_is_in_what_is_hashed(place, path):
    live = PrivacyBudget(1.0, path=path)
    model = seeded(live)
    (stream,) = model.ledger_.streams
    assert [facts["stream"] for facts in entries(place)] == [stream]
    assert [charge.stream for charge in PrivacyBudget.open(path).charges] == [stream]
    place.put(replaced(0, 0, stream, "ab")(*place.content()))
    refused(live)
    with pytest.raises(BudgetError, match="is damaged"):
        PrivacyBudget.open(path)
    # a chain that is sound in itself, and has forgotten the noise
    rewritten(place, lambda found: [{**found[0], "stream": None}])
    refused(live)
    with pytest.raises(BudgetError, match="lacks a charge"):
        PrivacyBudget.open(path, head=model)


def test_everybody_knows_the_noise_that_anybody_was_charged_for(path):
    live = PrivacyBudget(2.0, path=path)
    seeded(live, 1)
    sent = pickle.dumps(live)
    other = PrivacyBudget.open(path)
    seeded(other, 2)
    fit(other)
    spent = live.spent
    for budget in (live, other, pickle.loads(sent), PrivacyBudget.open(path)):
        for seed in (1, 2):
            with pytest.raises(BudgetError, match="had the same random_state"):
                seeded(budget, seed)
            with pytest.raises(BudgetError, match="had the same random_state"):
                budget.check(stream=seeded(None, seed).ledger_.streams[0])
    assert live.spent == spent
    seeded(live, 3)


@pytest.mark.parametrize("stream", ["ab" * 16, 7, ["ab"]])
def test_charges_that_share_their_noise_are_no_budget(place, path, stream):
    live = PrivacyBudget(1.0, path=path)
    fit(live), fit(live)
    rewritten(place, lambda found: [{**facts, "stream": stream} for facts in found])
    with pytest.raises(BudgetError, match=r"is damaged.*noise"):
        PrivacyBudget.open(path)


# -- stores ----------------------------------------------------------------------------------


class TableStore(BudgetStore):
    """A store as a database on a server would be one: rows by position, the key is unique."""

    name = "the budget in the table 'people'"

    def __init__(self, header, stream=None):
        self.header, self.rows, self.busy, self.stream = header, {}, 0, stream

    def read(self):
        return self.header, [self.rows[i] for i in sorted(self.rows)]

    def append(self, entry, head, expected):
        if self.busy:  # another client was faster
            self.busy -= 1
            PrivacyBudget.open(self).charge(0.1, **HERE, stream=self.stream)
        if expected != (self.rows[len(self.rows)][1] if self.rows else ""):
            return False
        self.rows[len(self.rows) + 1] = (entry, head)
        return True


def test_another_store_needs_no_more_than_the_interface():
    terms = PrivacyBudget(1.0)._terms
    store = TableStore(new_header(terms))
    budget = PrivacyBudget.open(store)
    model = fit(budget, 0.25)
    before = dict(store.rows)
    fit(budget, 0.5)
    assert PrivacyBudget.open(store, head=model).spent == (0.75, 0.0)
    assert budget.path is None
    with pytest.raises(BudgetError, match="left"):
        fit(PrivacyBudget.open(store), 0.5)
    store.rows = before
    with pytest.raises(BudgetError, match=r"'people' was put back to an earlier state"):
        fit(budget)


def test_whoever_was_slower_looks_again():
    store = TableStore(new_header(PrivacyBudget(1.0)._terms))
    budget = PrivacyBudget.open(store)
    store.busy = 3
    budget.charge(0.7, **HERE)
    assert [charge.epsilon for charge in budget.charges] == [0.1, 0.1, 0.1, 0.7]
    store = TableStore(new_header(PrivacyBudget(1.0)._terms))
    budget = PrivacyBudget.open(store)
    store.busy = 4
    with pytest.raises(BudgetError, match="left"):
        budget.charge(0.7, **HERE)


def test_whoever_was_slower_does_not_get_the_same_noise():
    store = TableStore(new_header(PrivacyBudget(1.0)._terms), stream="ab" * 16)
    budget = PrivacyBudget.open(store)
    store.busy = 1
    with pytest.raises(BudgetError, match="had the same random_state"):
        budget.charge(0.1, **HERE, stream="ab" * 16)
    assert len(budget.charges) == 1


def keeps_to_the_interface(store):
    """Assert that an entry is appended only to the head that is expected, and once."""
    first, second = (json.dumps({"person": store.person, "n": n}) for n in (1, 2))
    heads = [chained("", store.read()[0])]
    heads += [chained(heads[0], first)]
    heads += [chained(heads[1], second)]
    assert not store.append(first, heads[1], "ab")
    assert store.append(first, heads[1], "")
    assert not store.append(second, chained(heads[0], second), "")
    assert store.append(second, heads[2], heads[1])
    assert store.read()[1] == [(first, heads[1]), (second, heads[2])]


def test_an_entry_is_appended_only_to_the_head_that_is_expected(path):
    keeps_to_the_interface(PrivacyBudget(1.0, path=path)._chain.store)


def test_memory_keeps_to_the_interface_too():
    keeps_to_the_interface(MemoryStore(new_header(PrivacyBudget(1.0)._terms)))


@pytest.mark.full
def test_ten_thousand_charges_are_checked_in_a_fraction_of_a_second():
    budget = PrivacyBudget(1.0)
    budget.charge(0.1, **HERE)
    store = MemoryStore(new_header(PrivacyBudget(1e6)._terms))
    text, digest = budget._chain.read().entries[0], chained("", store.read()[0])
    for i in range(10_000):
        before, digest = digest, chained(digest, text)
        assert store.append(text, digest, before if i else "")
    chain = Chain(store)
    assert chain.read().spent[0] == 1000
    start = time.process_time()
    chain.read()
    assert time.process_time() - start < 0.5
