# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federated softmax regression on handwritten digits: accuracy against local budgets.

Run ``python benchmarks/federated_mnist.py``. It writes docs/benchmarks/federated_mnist.rst
and docs/_static/federated_mnist.png.
"""

import argparse
import json
import pathlib

import numpy as np
from _federated_page import write_page, write_picture
from _federated_runs import accuracy, configurations


def main():
    """Run all configurations, write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="file of raw results, to go on with")
    arguments = parser.parse_args()
    results = []
    if arguments.keep and arguments.keep.exists():
        results = json.loads(arguments.keep.read_text())
    known = {(result["group"], result["label"]) for result in results}
    for group, label, options in configurations():
        if (group, label) in known:
            continue
        found, fitted, seconds = accuracy(options, range(arguments.trials))
        results.append(
            {
                "group": group,
                "label": label,
                "trials": arguments.trials,
                "accuracy": float(np.mean(found)),
                "spread": float(np.ptp(found)),
                "seconds": seconds,
                "spent": fitted.privacy_spent_[0],
                "per_round": fitted.local_epsilon_per_round_,
                "local": fitted.local_privacy_spent_[0],
                "hypothetical": (fitted.hypothetical_privacy_spent_ or [None])[0],
                "projected": fitted.projected_share_,
            }
        )
        print(results[-1], flush=True)
        if arguments.keep:
            arguments.keep.write_text(json.dumps(results))
    write_page(results)
    write_picture(results)


if __name__ == "__main__":
    main()
