# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Draw docs/_static/which.svg, the chart of the page "which estimator".

``python docs/_ext/which_chart.py`` writes the file again. The same advice stands as a table on
the page, for those who cannot see the picture: change both.
"""

from html import escape
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "_static" / "which.svg"
WIDTH, SPINE, ASKED, LEAF, RIGHT = 740, 10, 185, 240, 730
LINE = 24
INK, GREY, RULE, QUESTION, ANSWER = "#1b1b1b", "#5a5a5a", "#8a8a8a", "#e4eef8", "#f6f6f2"
STROKE = f'stroke="{INK}" stroke-width="1.5"'

#: question of the spine, what leads to the box beside it, its title, its lines, what leads on
QUESTIONS = [
    (
        ["May somebody hold", "the rows as they are?"],
        "no",
        "Every row reports for itself; a budget of 8 is usual",
        [
            ("a mean", "LocalDPMean"),
            ("a number per row", "LocalDPLinearRegression"),
            ("classes", "LocalDPLogisticRegression"),
            ("directions of most variance", "LocalDPPCA, LocalDPCovariance"),
            ("the reports themselves", "PrivUnitPrivatizer,"),
            ("", "ScalarPrivatizer"),
        ],
        "yes",
    ),
    (
        ["Has a person more", "than one row?"],
        "yes",
        "Protect the person, not the row",
        [
            ("one row can stand for all", "make it first, then go on"),
            ("it cannot; classes", "FederatedDPLogisticRegression"),
        ],
        "no",
    ),
]

#: what is wanted, and who gives it
TASKS = [
    (
        ["Classes"],
        [
            ("with probabilities", "DPLogisticRegression"),
            ("labels only", "DPHingeSVM"),
            ("delta > 0, as a rule", 'mechanism="auto"'),
            ("full batches take too long", 'solver="sgd"'),
            ("sparse, 100,000 features", 'solver="lazy-sgd"'),
            ("few of many features matter", 'solver="frank-wolfe"'),
            ("delta = 0", 'mechanism="auto", few features'),
        ],
    ),
    (
        ["A number", "per row"],
        [
            ("its mean", "DPLpRegressor"),
            ("its median; outliers", 'DPLpRegressor(p=1), p="huber"'),
        ],
    ),
    (
        ["A mean"],
        [
            ("a tight bound is known", "DPMean"),
            ("far from the origin", 'DPMean(mechanism="coinpress")'),
            ("no bound is known", "DPHeavyTailedMean"),
            ("sparse rows", "DPSparseMeanEstimator"),
        ],
    ),
    (
        ["A median,", "a quantile"],
        [
            ("of a feature", "DPMedian, DPQuantile"),
            ("of the lengths of rows", "DPNormQuantile"),
        ],
    ),
    (
        ["Steps before", "a model"],
        [
            ("bounds are known: free", "BoundedScaler, NormClipper"),
            ("units are not", "DPStandardScaler"),
            ("the offset is not", "DPFeatureCenterer"),
            ("too many features", "DPFrequentFeatures"),
        ],
    ),
]


def text(x, y, words, *, size=15, anchor="start", fill=INK, bold=False, mono=False):
    """Return one line of text."""
    family = "monospace" if mono else "sans-serif"
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" '
        f'text-anchor="{anchor}" fill="{fill}"{weight}>{escape(words)}</text>'
    )


def box(x, y, width, height, fill, radius):
    """Return a rounded rectangle."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" '
        f'fill="{fill}" stroke="{RULE}"/>'
    )


def arrow(x1, y1, x2, y2):
    """Return a line with a head."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {STROKE} marker-end="url(#head)"/>'


def leaves(y, title, lines):
    """Return the box of answers that starts at height y, and its height."""
    height = LINE * (len(lines) + bool(title)) + 16
    parts = [box(LEAF, y, RIGHT - LEAF, height, ANSWER, 6)]
    at = y + 8 + LINE - 7
    if title:
        parts.append(text(LEAF + 14, at, title, bold=True))
        at += LINE
    for condition, name in lines:
        parts.append(text(LEAF + 14, at, condition, fill=GREY))
        parts.append(text(LEAF + 226, at, name, size=14, mono=True))
        at += LINE
    return parts, height


def question(y, lines, height):
    """Return the box of a question, centered on a row of the given height, and its edges."""
    tall = 22 * len(lines) + 22
    top = y + (height - tall) / 2
    middle = SPINE + ASKED / 2
    parts = [box(SPINE, top, ASKED, tall, QUESTION, 14)]
    for i, words in enumerate(lines):
        parts.append(text(middle, top + 28 + 22 * i, words, anchor="middle", bold=True))
    return parts, top, top + tall


def chart():
    """Return the chart as the text of an SVG file."""
    parts, y, before, label = [], 20, None, ""
    middle = SPINE + ASKED / 2
    for lines, aside, title, answers, onward in QUESTIONS:
        drawn, height = leaves(y, title, answers)
        asked, top, bottom = question(y, lines, height)
        parts += drawn + asked
        parts.append(arrow(SPINE + ASKED, (top + bottom) / 2, LEAF - 3, (top + bottom) / 2))
        parts.append(
            text(
                (SPINE + ASKED + LEAF) / 2 - 3,
                (top + bottom) / 2 - 8,
                aside,
                anchor="middle",
                bold=True,
            )
        )
        if before is not None:
            parts.append(arrow(middle, before, middle, top - 3))
            parts.append(text(middle + 12, (before + top) / 2 + 5, label, bold=True))
        y, before, label = y + height + 26, bottom, onward
    parts.append(arrow(middle, before, middle, y + 2))
    parts.append(text(middle + 12, (before + y) / 2 + 5, label, bold=True))
    parts.append(box(SPINE, y + 5, RIGHT - SPINE, 40, QUESTION, 14))
    parts.append(text(middle, y + 30, "What is wanted?", anchor="middle", bold=True))
    y += 65
    start, trunk = y - 20, []
    for lines, answers in TASKS:
        drawn, height = leaves(y, "", answers)
        parts += drawn
        at = y + height / 2
        trunk.append(at)
        for i, words in enumerate(lines):
            above = at + 5 + 22 * (i - (len(lines) - 1) / 2)
            parts.append(text(SPINE + 38, above, words, bold=True))
        parts.append(arrow(SPINE + 150, at, LEAF - 3, at))
        parts.append(f'<line x1="{SPINE + 14}" y1="{at}" x2="{SPINE + 32}" y2="{at}" {STROKE}/>')
        y += height + 14
    parts.append(
        f'<line x1="{SPINE + 14}" y1="{start}" x2="{SPINE + 14}" y2="{trunk[-1]}" {STROKE}/>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6}" '
        f'width="{WIDTH}" height="{y + 6}" role="img">'
        "<title>Which estimator: a chart of questions and answers</title>"
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{y + 6}" fill="#ffffff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(chart(), encoding="utf-8")
