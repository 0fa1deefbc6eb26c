# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy cards, and their input."""

import copy
import datetime
import json
import math
import pickle
import re
import warnings
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import (
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    DPSparseMeanEstimator,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    NormClipper,
    PrivUnitPrivatizer,
    papers,
    privacy_card,
    privacy_spent,
    solvers,
)
from skdp.federated import Population
from skdp.inspection import PrivacyCard
from skdp.inspection._card import downward, shown, upward
from tests.test_common import ALL, configurations
from tests.test_persistence import X, Y

# A reviewer who reads only the card is told what is true, and nothing about the rows.


OTHER = np.random.default_rng(9).normal(size=X.shape) * 3 + 1
TOP = [
    "schema", "name", "date", "estimator", "claim", "local_claim", "notes", "not_covered",
    "assumptions", "public", "ledger", "composition", "numerics", "versions", "verify",
]  # fmt: skip
CLAIM = [
    "status", "sentence", "epsilon", "delta", "adjacency", "adjacency_in_words", "unit", "seeded",
    "odds",
]  # fmt: skip


class NoTags:
    """Holds a private fit, and is no estimator of scikit-learn, as wrappers elsewhere are."""

    def fit(self, X, y):
        """Fit a model, and keep it."""
        self.model_ = DPLogisticRegression(max_iter=2, data_norm=1.0).fit(X, y)
        return self


def test_a_last_step_without_tags_has_a_card():
    # once an error of scikit-learn about tags
    model = make_pipeline(NormClipper(), NoTags())
    card = privacy_card(model.fit(X, Y)).to_dict()
    assert card["claim"]["status"] == "none"
    assert "fits that it did not keep" in card["not_covered"]["parts"][0]["text"]
    with pytest.raises((TypeError, NotFittedError)):
        privacy_card(make_pipeline(NormClipper(), DPLogisticRegression(data_norm=1.0)))


def assert_close(ours, theirs):
    """Compare but for the rounding of prices, which rests on the scale."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict | list):
        assert len(ours) == len(theirs)
        for key in ours if isinstance(ours, dict) else range(len(ours)):
            assert_close(ours[key], theirs[key])
    elif isinstance(ours, float):
        # numerical composition gives epsilon to eight digits
        assert ours == pytest.approx(theirs, rel=1e-7)
    elif "GaussianDpEvent" not in str(ours):
        assert ours == theirs


def facts(estimator, **options):
    return privacy_card(estimator, **options).to_dict()


def assert_plain(value):
    """Only built-in types that JSON has."""
    assert value is None or type(value) in (dict, list, str, int, float, bool)
    if isinstance(value, float):
        assert math.isfinite(value)
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        assert_plain(inner)


NAMES = ("mechanism", "solver", "clipping_norm")


def adapts(estimator):
    """Tell whether a release is scaled by what an earlier one of the same fit let out."""
    params = estimator.get_params()
    choices = {str(params.get(name)).split("(")[0] for name in NAMES}
    if isinstance(estimator, DPLogisticRegression | DPHingeSVM) and params["delta"]:
        # the default, where there is signal enough
        choices |= {"Preconditioned"} if choices <= {"auto", "gradient", "None"} else set()
    adaptive = "phased Localized OnePass clipped coinpress shifted-clipped FeaturePreprocessing"
    adaptive = {*adaptive.split(), "Preconditioned", "preconditioned"}
    # moments are given in the units of the data, which a regression has from an earlier release
    moments = isinstance(params.get("clipping_norm"), tuple)
    return (
        bool(choices & adaptive)
        or moments
        or (isinstance(estimator, DPHeavyTailedMean) and params["moment_bound"] is None)
    )


def without_scales(card):
    """Leave out what later releases of an adaptive fit take from earlier ones."""
    card = card.to_dict()
    for entry in card["ledger"]:
        del entry["query"], entry["theorem"], entry["stated_sensitivity"]
        # there may be fewer steps, at the same price together
        entry["noise"]["mu"] = math.sqrt(entry.pop("count")) * (entry["noise"]["mu"] or 0.0)
        for name in ("scale", "grid", "sensitivity", "bound"):
            del entry["noise"][name]
    return card


@pytest.mark.sample(8)
@pytest.mark.parametrize("estimator", configurations(ALL))
def test_every_estimator_has_a_card_that_says_nothing_about_rows(estimator, capsys):
    models = [clone(estimator).fit(rows, Y) for rows in (OTHER, X)]
    cards = [privacy_card(model) for model in models]
    if adapts(estimator):
        for entry in [entry for card in cards for entry in card.to_dict()["ledger"]]:
            assert entry["noise"]["mu"] or entry["noise"]["epsilon"]
        assert_close(*map(without_scales, cards))
    else:
        assert cards[0] == cards[1]
        assert cards[0].to_markdown() == cards[1].to_markdown()
    model, card = models[1], cards[1].to_dict()
    assert list(card) == TOP
    assert list(card["claim"]) == CLAIM
    assert_plain(card)
    assert json.loads(cards[1].to_json()) == card
    spent = privacy_spent(model)
    assert card["claim"]["epsilon"] == spent.epsilon
    assert card["claim"]["delta"] == spent.delta
    assert card["claim"]["status"] == "holds"
    assert len(card["ledger"]) == len(spent.ledger.releases)
    for entry, release in zip(card["ledger"], spent.ledger.releases, strict=True):
        assert entry["noise"]["scale"] == release.noise.scale
        assert entry["count"] == release.count
    names = set(model.get_params(deep=False))
    assert all(set(step["parameters"]) == names for step in card["public"]["steps"])


def test_the_schema_is_what_it_was():
    card = facts(DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, Y))
    assert card["schema"] == "skdp.privacy_card/1"
    assert list(card["composition"]) == ["method", "gdp", "rho", "epsilon_at", "dp_event"]
    assert list(card["public"]) == ["facts", "n_features", "steps"]
    assert list(card["not_covered"]) == ["parts", "never"]
    assert list(card["public"]["steps"][0]) == ["name", "estimator", "role", "parameters"]
    # fields may be added, and none may go
    assert set(card["ledger"][0]) >= {
        "query", "size", "adjacency", "stated_sensitivity", "theorem", "noise", "numerics",
        "seeded", "count", "rows", "fit", "unit", "hidden", "of_reports",
    }  # fmt: skip
    assert set(card["ledger"][0]["noise"]) >= {
        "law", "scale", "grid", "sensitivity", "bound", "mu", "epsilon", "delta", "sampling",
        "threshold", "two_sided", "by_chance",
    }  # fmt: skip
    assert next(iter(card["versions"])) == "skdp"


def test_a_plain_fit():
    model = DPMean(epsilon=0.5, delta=1e-5, bounds=(0, 1), mechanism="gaussian").fit(X)
    card = facts(model)
    sentence = card["claim"]["sentence"]
    for part in ("epsilon = 0.5 nats", "delta = 1e-05", "replace-one", "differ in one row"):
        assert part in sentence
    assert card["local_claim"] is None
    assert card["notes"] == []
    assert card["assumptions"] == []
    assert "Gaussian" in card["composition"]["method"]
    assert card["public"]["n_features"] == 3
    table = {row["delta"]: row["epsilon"] for row in card["composition"]["epsilon_at"]}
    assert table[0.0] is None
    assert table[1e-5] == model.privacy_spent_[0]
    assert (
        "null row" in facts(DPMean(adjacency="zero-out", data_norm=1.0).fit(X))["claim"]["sentence"]
    )


def test_a_delta_that_prints_as_another_is_listed_once():
    model = DPMean(data_norm=1.0, delta=1e-6 - 1e-14, mechanism="gaussian").fit(X)
    card = privacy_card(model)
    listed = re.search(r"\| delta \| epsilon.*?\n\n", card.to_markdown(), re.DOTALL)[0]
    deltas = re.findall(r"^\| (\d\S*) \|", listed, re.MULTILINE)
    assert deltas == ["0", "1e-10", "1e-08", "1e-06", "1e-05", "0.0001"]
    # that of the claim
    table = card.to_dict()["composition"]["epsilon_at"]
    assert {"delta": model.delta, "epsilon": model.privacy_spent_[0]} in table


def test_a_pure_fit_does_not_speak_of_delta():
    card = facts(DPMean(mechanism="laplace", data_norm=1.0).fit(X))
    assert "(delta = 0)" in card["claim"]["sentence"]
    assert "plus delta" not in card["claim"]["sentence"]
    assert "added up" in card["composition"]["method"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_odds_without_delta_bound_every_outcome(epsilon):
    model = DPMean(epsilon=epsilon, mechanism="laplace", data_norm=1.0).fit(X)
    card = facts(model)
    exact = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert exact - 1e-12 <= card["claim"]["odds"]["guess"] <= exact + 1e-9
    sentence = card["claim"]["odds"]["sentence"]
    assert "whatever is released" in sentence
    assert privacy_card(model).odds == sentence
    (percent,) = re.findall(r"at most ([\d.]+) % sure", sentence)
    assert 100 * exact <= float(percent) <= 100 * exact + 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_odds_of_gaussian_noise_are_those_of_the_best_test(epsilon):
    model = DPMean(epsilon=epsilon, delta=1e-6, data_norm=1.0, mechanism="gaussian").fit(X)
    odds = facts(model)["claim"]["odds"]
    # who sees which side of the middle a draw lies on, of two that are mu standard deviations apart
    (noise,) = (release.noise for release in model.ledger_.releases)
    exact = (1 + math.erf(noise.sensitivity / noise.scale / 2 / math.sqrt(2))) / 2
    assert exact - 1e-12 <= odds["guess"] <= exact + 1e-6
    assert odds["guess"] < math.exp(epsilon) / (1 + math.exp(epsilon))
    assert "on average" in odds["sentence"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_odds_with_delta_and_no_gaussian_price_hold_at_every_delta(epsilon):
    model = DPSparseMeanEstimator(
        epsilon=epsilon, delta=0.01, mechanism="histogram", nonnegative=True, sparsity=2
    )
    card = facts(model.fit(np.abs(X)))
    assert card["composition"]["gdp"] is None
    (spent,) = (row for row in card["composition"]["epsilon_at"] if row["delta"] == 0.01)
    # of two laws whose curve is that of (epsilon, delta), the likelier is right that often
    e = math.exp(spent["epsilon"])
    assert card["claim"]["odds"]["guess"] == pytest.approx((e + 0.01) / (1 + e), rel=1e-9)
    assert not card["claim"]["odds"]["always"]


def test_odds_without_a_bound_say_so():
    for card in (
        privacy_card(DPMean(data_norm=1.0, mechanism="gaussian").fit(X), delta=0),
        privacy_card(
            make_pipeline(StandardScaler(), DPMean(data_norm=1.0, mechanism="gaussian")).fit(X)
        ),
    ):
        odds = card.to_dict()["claim"]["odds"]
        assert odds["guess"] is None
        assert odds["sentence"].startswith("No bound")
        assert "No bound is claimed" in card.to_markdown()
    nothing = facts(NormClipper().fit(X))["claim"]["odds"]
    assert (nothing["guess"], nothing["always"]) == (0.5, True)


def test_odds_in_a_picture():
    for delta, right in ((1e-6, 55), (0, 100)):
        ax = privacy_card(
            DPMean(epsilon=1.0, data_norm=1.0, mechanism="gaussian").fit(X), delta=delta
        ).plot()
        before, _, after, missed = (len(dots.get_offsets()) for dots in ax.collections)
        assert (before, after, missed) == (50, right, 100 - right)
        words = [text.get_text() for text in ax.texts]
        assert ("no bound" in words[1]) == (delta == 0)
        plt.close(ax.figure)


def test_a_seeded_fit_says_so_first():
    card = privacy_card(DPMean(random_state=271828, data_norm=1.0, mechanism="gaussian").fit(X))
    assert card.to_dict()["claim"]["status"] == "holds unless the seed is known"
    assert card.to_dict()["claim"]["seeded"]
    assert "SEEDED" in card.claim
    text = card.to_markdown()
    assert text.index("**SEEDED**") < text.index("## Claim")
    assert "271828" not in text + card.to_json()


@pytest.mark.full
def test_sampled_releases():
    model = DPLogisticRegression(
        epsilon=4.0, solver=solvers.SGD(batch_size=20), max_iter=5, classes=[0, 1], data_norm=1.0
    ).fit(X, Y)
    card, text = facts(model), privacy_card(model).to_markdown()
    assert "random batches" in card["composition"]["method"]
    assert card["composition"]["gdp"] is None
    assert card["ledger"][0]["noise"]["sampling"]["rate"] == pytest.approx(20 / 137)
    assert "if all rows were read" in text
    assert "poisson, rate 0.14" in text


@pytest.mark.full
def test_hidden_reports_have_two_claims():
    model = FederatedDPLogisticRegression(
        epsilon=8.0, local_epsilon=16.0, classes=[0, 1], randomiser="auto"
    ).fit(X, Y, groups=np.arange(len(X)))
    card, text = facts(model), privacy_card(model).to_markdown()
    assert "one group (a person, a client), with all of its rows" in card["claim"]["sentence"]
    assert "every group on its own" in text
    assert card["claim"]["epsilon"] == model.privacy_spent_[0]
    assert card["local_claim"]["epsilon"] == model.local_privacy_spent_[0]
    assert card["local_claim"]["pure_epsilon"] == model.local_epsilon_total_
    assert "noisy sums" in card["local_claim"]["sentence"]
    assert "by the aggregator of the reports" in text
    assert "IDEALISED" in text


def test_reports_beside_what_learned_from_rows_promise_nothing():
    report = PrivUnitPrivatizer(epsilon=4.0)
    card = privacy_card(make_pipeline(report, LogisticRegression()).fit(X, Y)).to_dict()
    local = card["local_claim"]
    # whoever fitted the last step was given labels in the clear
    assert local["sentence"].startswith("None is stated: the fit computed more than reports")
    assert local["epsilon"] is local["pure_epsilon"] is local["delta"] is None
    assert card["claim"]["status"] == "none"


@pytest.mark.slow
def test_a_simulated_population():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FederatedDPLogisticRegression(
            epsilon=1.0,
            classes=[0, 1],
            population=Population(1e6, batch_size=1000.0),
            max_iter=2,
        ).fit(X, Y, groups=np.arange(len(X)))
    card = facts(model)
    assert card["claim"]["epsilon"] == model.privacy_spent_[0] > 1.0
    assert [note["kind"] for note in card["notes"]] == ["simulated population"]


@pytest.mark.parametrize("model", [LocalDPMean(), LocalDPLogisticRegression(classes=[0, 1])])
def test_local_reports(model):
    card = facts(clone(model).fit(X, Y))
    assert card["claim"]["adjacency"] == "local"
    assert "towards everybody" in card["claim"]["sentence"]
    assert card["local_claim"]["epsilon"] == card["claim"]["epsilon"]
    assert "pays for its own reports" in card["composition"]["method"]


@pytest.mark.full
def test_reports_next_to_other_releases():
    pipe = make_pipeline(
        PrivUnitPrivatizer(), DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    ).fit(X, Y)
    card = facts(pipe)
    assert card["claim"]["adjacency"] == "replace-one"
    assert "as if every row made all of them" in card["composition"]["method"]
    assert card["local_claim"]["epsilon"] is None
    assert card["local_claim"]["sentence"].startswith("None is stated")


def test_thresholds_and_small_deltas():
    model = DPSparseMeanEstimator(mechanism="histogram", sparsity=2, nonnegative=True).fit(X)
    card, text = facts(model), privacy_card(model).to_markdown()
    assert card["claim"]["delta"] == model.privacy_spent_[1]
    assert "only what is above" in text
    refused = facts(model, delta=1e-12)
    assert refused["claim"]["status"] == "none"
    assert refused["claim"]["epsilon"] is None
    assert "NO finite epsilon" in refused["claim"]["sentence"]
    assert "no claim" in privacy_card(model, delta=1e-12).to_markdown()


def test_ranges_of_rows():
    model = DPLogisticRegression(
        epsilon=8.0, solver=papers.OnePass(), classes=[0, 1], data_norm=1.0
    ).fit(X, Y)
    card, text = facts(model), privacy_card(model).to_markdown()
    assert "range of public positions" in card["composition"]["method"]
    last = card["ledger"][-1]["rows"]
    assert f"positions {last[0]} to {last[1] - 1}" in text


def test_prepaid_releases_that_nobody_saw():
    model = DPLogisticRegression(
        epsilon=8.0, solver="lazy-sgd", max_iter=40, C=100.0, data_norm=1.0
    )
    text = privacy_card(model.fit(X, Y)).to_markdown()
    assert "counts as if everybody had seen it" in text
    assert "which was read from y" in text


def test_a_step_without_a_ledger_voids_the_claim():
    pipe = make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1], data_norm=1.0)).fit(
        X, Y
    )
    card, text = facts(pipe), privacy_card(pipe).to_markdown()
    assert card["claim"]["status"] == "none"
    assert card["claim"]["epsilon"] is card["claim"]["delta"] is None
    assert "step 'standardscaler'" in card["claim"]["sentence"]
    (part,) = card["not_covered"]["parts"]
    assert (part["kind"], part["step"]) == ("step", card["public"]["steps"][0]["name"])
    assert f"- **{part['text']}**" in text
    assert [step["role"][:7] for step in card["public"]["steps"]] == ["learned", "private"]
    assert "| holds |" not in text
    # what the scaler has learned is not there
    assert f"{pipe[0].mean_[0]:.4g}"[:5] not in text
    nothing = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert facts(nothing)["claim"]["status"] == "none"


def test_steps_with_ledgers_add_up():
    pipe = make_pipeline(
        ColumnTransformer([("a", DPStandardScaler(epsilon=0.5), [0, 1]), ("b", "drop", [2])]),
        FunctionTransformer(np.tanh),
        DPLogisticRegression(epsilon=0.5, classes=[0, 1], data_norm=1.0),
    ).fit(X, Y)
    card = facts(pipe, name="two steps")
    assert card["name"] == "two steps"
    assert card["claim"]["epsilon"] == privacy_spent(pipe).epsilon
    roles = [step["role"] for step in card["public"]["steps"]]
    assert roles == ["private: on the ledger", "learns nothing from rows", "private: on the ledger"]


def test_nothing_was_spent():
    assert facts(NormClipper().fit(X))["claim"]["epsilon"] == 0.0
    assert "so far" in facts(PrivUnitPrivatizer().fit(X))["claim"]["sentence"]
    assert "No release." in str(privacy_card(NormClipper().fit(X)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("refit", [True, False])
def test_a_search_of_scikit_learn_claims_nothing(refit):
    grid = {"epsilon": [0.5, 1.0], "random_state": [None]}
    cards = [
        privacy_card(
            GridSearchCV(
                DPLogisticRegression(random_state=271828, data_norm=1.0), grid, refit=refit, cv=3
            ).fit(rows, Y)
        )
        for rows in (X, OTHER)
    ]
    # the winner differs, and the card does not say which it is
    assert cards[0] == cards[1]
    card = cards[0].to_dict()
    assert card["claim"]["status"] == "none"
    assert card["claim"]["epsilon"] is None
    assert "made 6 fits on 3 folds" in card["claim"]["sentence"]
    assert "epsilon = 4.5 nats" in card["claim"]["sentence"]
    assert [part["kind"] for part in card["not_covered"]["parts"]] == ["choice", "splits"]
    assert "271828" not in cards[0].to_json() + str(cards[0])


def test_a_search_that_pays_for_itself():
    model = DPGridSearchCV(
        DPLogisticRegression(classes=[0, 1], data_norm=1.0),
        {"C": [1.0, 10.0]},
        epsilon=8.0,
        random_state=271828,
    ).fit(X, Y)
    for fitted in (model, model.best_estimator_):
        card, text = facts(fitted), str(privacy_card(fitted))
        assert card["claim"]["epsilon"] == model.privacy_spent_[0] <= 8.0
        assert card["claim"]["status"] == "holds unless the seed is known"
        assert "within every run, and in the choice" in text
        assert "271828" not in text
    parameters = facts(model)["public"]["steps"][0]["parameters"]
    assert parameters["param_grid"] == {"C": [1.0, 10.0]}
    assert parameters["estimator"]["estimator"] == "DPLogisticRegression"
    # what it chose is not there
    assert "best_params_" not in json.dumps(facts(model))


def test_a_search_without_any_private_step():
    card = facts(GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}).fit(X, Y))
    assert card["claim"]["status"] == "none"
    assert "not known" in card["claim"]["sentence"]
    (part,) = card["not_covered"]["parts"]
    assert (part["kind"], part["step"]) == ("fits", None)
    assert part["text"] == "the fits of GridSearchCV, whose price is not known"


def test_a_solver_is_shown_with_its_parameters():
    model = DPLogisticRegression(
        solver=solvers.SGD(batch_size=20), max_iter=5, classes=[0, 1], data_norm=1.0
    )
    card = privacy_card(model.fit(X, Y))
    shown = card.to_dict()["public"]["steps"][0]["parameters"]["solver"]
    assert shown["solver"] == "SGD"
    assert shown["parameters"]["batch_size"] == 20
    assert '"solver": "SGD"' in card.to_markdown()


# Cards of what has none, names, files, and how parameters and numbers are shown.


INPUT_X = np.random.default_rng(0).normal(size=(137, 3))
INPUT_Y = np.arange(137) % 2


@pytest.mark.parametrize(
    "given",
    [
        {"param_grid": {"random_state": [271828, 3]}},
        {"param_grid": [{"dpmean__random_state": [271828]}]},
        {"estimator": DPMean(random_state=271828, data_norm=1.0, mechanism="gaussian")},
        {
            "other": make_pipeline(
                NormClipper(), DPMean(random_state=271828, data_norm=1.0, mechanism="gaussian")
            )
        },
        {"random_state": 271828},
        {"step__random_seed": 271828},
    ],
)
def test_no_seed_is_ever_shown(given):
    for name, value in given.items():
        assert "271828" not in json.dumps(shown(name, value))


def test_unfitted_and_wrong_things_are_refused():
    for unfitted in (
        DPMean(data_norm=1.0, mechanism="gaussian"),
        PrivUnitPrivatizer(),
        make_pipeline(NormClipper(), DPMean(data_norm=1.0, mechanism="gaussian")),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            privacy_card(unfitted)
    for wrong in (
        DPMean,
        3,
        None,
        "model",
        DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X).ledger_,
        INPUT_X,
    ):
        with pytest.raises(TypeError, match="needs a fitted estimator; got"):
            privacy_card(wrong)
    with pytest.raises(TypeError, match="LogisticRegression has no ledger_"):
        privacy_card(LogisticRegression().fit(INPUT_X, INPUT_Y))
    broken = DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    broken.ledger_ = "much"
    with pytest.raises(TypeError, match="must be a Ledger; got a str"):
        privacy_card(broken)
    broken = DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    del broken.privacy_spent_
    with pytest.raises(TypeError, match="DPMean has a ledger_ but no privacy_spent_"):
        privacy_card(broken)


def test_adjacencies_that_differ_are_refused():
    pipe = make_pipeline(
        DPStandardScaler(adjacency="zero-out"), DPLogisticRegression(data_norm=1.0)
    ).fit(INPUT_X, INPUT_Y)
    with pytest.raises(ValueError, match="one adjacency"):
        privacy_card(pipe)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, 2])
def test_deltas_out_of_range(delta):
    with pytest.raises(ValueError, match="delta"):
        privacy_card(DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X), delta=delta)


def test_names_and_dates():
    model = DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    assert facts(model)["date"] is None
    assert facts(model, date="May")["date"] == "May"
    assert facts(model, date=datetime.date(2030, 1, 2))["date"] == "2030-01-02"
    for wrong in ({"name": 3}, {"date": 2030}):
        with pytest.raises(TypeError, match="must be a str"):
            privacy_card(model, **wrong)
    nasty = "a\n# b | c <script> `x` *y* [z](http://z)"
    heading = str(privacy_card(model, name=nasty)).splitlines()[0]
    assert heading == r"# Privacy card: a # b \| c \<script> \`x\` \*y\* [z\](http://z)"


def test_delta_of_the_user():
    model = DPMean(epsilon=1.0, delta=1e-6, data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    claim = facts(model, delta=1e-3)["claim"]
    assert claim["delta"] == 1e-3
    assert claim["epsilon"] == model.ledger_.epsilon(1e-3) < 1.0


class Shown(HTMLParser):
    """What a browser makes of a page: its tags, all of them closed, and its words."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert not attrs
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data.split()


@pytest.mark.parametrize(
    "name", ["a plain name", "<script>x</script> | **b** `c` \\ &amp; [d](e) # f"]
)
def test_a_card_in_html_says_the_same(name):
    classes = ["<b>|x", "`*"]
    model = DPLogisticRegression(1.0, 1e-5, classes=classes, random_state=0, data_norm=1.0)
    card = privacy_card(model.fit(X, np.array(classes)[Y]), name=name)
    page = Shown(card._repr_html_())
    marks = {"h1", "h2", "h3", "p", "ul", "li", "table", "tr", "th", "td", "code"}
    assert page.tags == {*marks, "blockquote", "strong"}
    assert " ".join(page.words).startswith(f"Privacy card: {name} Estimator: DPLogisticRegression.")
    # nothing but marks differs
    letters = re.compile(r"[a-z0-9]+", re.IGNORECASE)
    text = re.sub(r"&amp;", "&", card.to_markdown())
    assert letters.findall(" ".join(page.words).replace("&amp;", "&")) == letters.findall(text)


def test_saving(tmp_path):
    card = privacy_card(DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X))
    assert card.save(tmp_path / "card.md").read_text(encoding="utf-8") == card.to_markdown()
    path = card.save(str(tmp_path / "card.JSON"))
    assert json.loads(path.read_text(encoding="utf-8")) == card.to_dict()
    with pytest.raises(ValueError, match=r"must end in \.md or \.json; got 'card.txt'"):
        card.save(tmp_path / "card.txt")
    with pytest.raises(FileNotFoundError):
        card.save(tmp_path / "none" / "card.md")


def test_a_card_is_a_value():
    model = DPMean(data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    card = privacy_card(model)
    card.to_dict()["claim"]["epsilon"] = 0
    assert card.to_dict()["claim"]["epsilon"] == model.privacy_spent_[0]
    assert card == privacy_card(model) == pickle.loads(pickle.dumps(card)) == copy.copy(card)
    assert card != privacy_card(
        DPMean(epsilon=2.0, data_norm=1.0, mechanism="gaussian").fit(INPUT_X)
    )
    assert card != "card"
    assert str(card) == card._repr_markdown_() == card.to_markdown()
    assert repr(card).startswith("<PrivacyCard of DPMean: status 'holds', epsilon=")
    assert isinstance(card, PrivacyCard)


def test_arrays_and_objects_are_summarised():
    lower = np.arange(3.0) - 50
    model = DPQuantile(bounds=(lower, pd.Series([99.0, 99.0, 99.0]))).fit(INPUT_X)
    bounds = facts(model)["public"]["steps"][0]["parameters"]["bounds"]
    assert bounds == ["ndarray of shape (3,)", "Series of shape (3,)"]
    assert shown("f", np.tanh) == "object of type ufunc" or "tanh" in shown("f", np.tanh)
    assert shown("f", len) == "builtins.len"
    assert shown("x", [1] * 13) == "list of 13"
    assert shown("x", {"b", "a"}) == ["a", "b"]
    assert shown("x", math.inf) == "inf"
    assert shown("x", np.float32(0.5)) == 0.5
    assert shown("x", np.bool_(True)) is True
    assert shown("x", "a" * 300).endswith("... (300 letters)")
    assert shown("x", b"secret") == "object of type bytes"
    deep = value = []
    for _ in range(9):
        value.append([])
        value = value[0]
    assert "not shown" in json.dumps(shown("x", deep))


def test_a_secret_number_of_rows_is_not_called_public():
    for adjacency, called in (("replace-one", True), ("zero-out", True), ("add-remove", False)):
        model = DPMean(data_norm=1.0, adjacency=adjacency).fit(INPUT_X)
        facts = privacy_card(model).to_dict()["public"]["facts"]
        assert ("the number of rows" in facts) is called
        assert len(facts) == 2 + called


def test_no_address_is_shown():
    model = make_pipeline(
        FunctionTransformer(lambda rows: rows), DPMean(data_norm=1.0, mechanism="gaussian")
    ).fit(INPUT_X)
    assert "0x" not in privacy_card(model).to_json()


@pytest.mark.parametrize("x", [0.1, 1.0, 1e-6, math.pi, 1e-300, 123456789.1, 0.99999999, 5e-324])
def test_numbers_are_rounded_outward(x):
    assert downward(x) == upward(x) or float(downward(x)) < x < float(upward(x))
    assert float(downward(x)) <= x <= float(upward(x))
    assert float(upward(x)) <= x * (1 + 1.1e-5) + 5e-324
    assert upward(math.inf) == upward(None) == "infinite"


def test_printed_prices_are_no_less_than_true():
    model = DPLogisticRegression(epsilon=1 / 3, classes=[0, 1], data_norm=1.0).fit(INPUT_X, INPUT_Y)
    text, release = str(privacy_card(model)), model.ledger_.releases[0]
    assert float(re.search(r"epsilon = ([\d.]+) nats", text)[1]) >= model.privacy_spent_[0]
    assert float(re.search(r"mu = ([\d.e-]+) \|", text)[1]) >= release.noise.mu
    assert float(re.search(r"deviation ([\d.e-]+),", text)[1]) <= release.noise.scale


def test_the_event_is_cut_and_says_so():
    model = LocalDPLogisticRegression(epsilon=8.0, classes=[0, 1]).fit(INPUT_X, INPUT_Y)
    card = facts(model)["composition"]["dp_event"]
    assert len(card) < 2100
    many = DPMean(mechanism="coinpress", epsilon=8.0, data_norm=1e12).fit(INPUT_X)
    event = facts(many)["composition"]["dp_event"]
    assert event == str(many.ledger_.dp_event) or "letters; all of it" in event
