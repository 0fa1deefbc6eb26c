# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of other libraries in their own environments, on exported splits."""

import json
from pathlib import Path

import _accuracy_peers
from _accuracy_data import DATA, SEEDS, export
from _accuracy_store import read
from _datasets import DELTA, EPSILONS
from _environments import run_there

__all__ = ["measure_peer"]

#: splits to search settings on: one where fits are slow
TUNING_SEEDS = {"Adult": (0,), "text": (0,), "MNIST": (0,)}


def measure_peer(
    peer, folder, environments=None, names=None, most_splits=None, epsilons=EPSILONS, seeds=None
):
    """Fit a peer's classifiers to every split that is not done yet; return all records.

    Parameters
    ----------
    peer : str
        A name of `_environments.PACKAGES`.
    folder : path-like
        Where results and exported rows are kept.
    environments : path-like, default=None
        Folder of environments.
    names, most_splits, epsilons
        As in `_accuracy_methods.measure`.
    seeds : iterable of int, default=None
        Splits, in place of those of the page.

    Returns
    -------
    records : list of dict
        Of the peer's file.
    """
    folder = Path(folder)
    data = {}
    for name in names or DATA:
        chosen = list(seeds or SEEDS[name][:most_splits])
        tuning = TUNING_SEEDS.get(name, (0, 1))
        data[name] = {"seeds": chosen, "tuning": tuning, "C": DATA[name][1]}
        for seed in (*tuning, *chosen):
            export(name, seed, folder / "splits")
    tasks, out = folder / f"{peer}-tasks.json", folder / f"{peer}.jsonl"
    tasks.write_text(json.dumps({"data": data, "epsilons": list(epsilons), "delta": DELTA}))
    run_there(
        peer, environments, _accuracy_peers.__file__, peer, tasks, folder / "splits", out
    )  # fmt: skip
    return read(out)
