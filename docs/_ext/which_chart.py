# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Draw docs/_static/which.svg, the chart of the page "which estimator".

``python docs/_ext/which_chart.py`` writes the file again. It is as narrow as a telephone, so that
nobody has to enlarge it. The same advice stands as a table on the page, for those who cannot see
the picture: change both.
"""

from html import escape
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "_static" / "which.svg"
WIDTH, LEFT, NAME = 412, 4, 176
LINE, GAP = 23, 26
INK, GREY, RULE, QUESTION, ANSWER = "#1b1b1b", "#5a5a5a", "#8a8a8a", "#e4eef8", "#f6f6f2"

#: question, the answer that leads to the box below it, what that says, its lines, the other answer
QUESTIONS = [
    (
        "May somebody hold the rows as they are?",
        "No: local reports, epsilon about 8",
        [
            ("a mean", "LocalDPMean"),
            ("counts of categories", "LocalDPFrequencies"),
            ("regression", "LocalDPLinearRegression"),
            ("classes", "LocalDPLogisticRegression"),
            ("covariances", "LocalDPCovariance"),
            ("principal components", "LocalDPPCA"),
            ("reports of vectors", "PrivUnitPrivatizer"),
            ("reports of numbers", "ScalarPrivatizer"),
        ],
        "yes",
    ),
    (
        "Has a person more than one row?",
        "Yes: protect the person, not the row",
        [
            ("statistics, models", "fit(..., groups=...)"),
            ("federations", "FederatedDPLogisticRegression"),
        ],
        "no",
    ),
]

#: tasks, and the estimators for them
TASKS = [
    (
        "Classes",
        [
            ("with probabilities", "DPLogisticRegression"),
            ("nonlinear boundary", "DPKernelClassifier"),
            ("labels only", "DPHingeSVM"),
            ("default mechanism", 'mechanism="auto"'),
            ("random batches", 'solver="sgd"'),
            ("500,000 features", 'solver="lazy-sgd"'),
            ("few features matter", 'solver="frank-wolfe"'),
        ],
    ),
    (
        "Regression",
        [
            ("mean of the target", "DPLpRegressor"),
            ("nonlinear", "DPKernelRegressor"),
            ("with intervals", "DPRidge"),
            ("median of the target", "DPLpRegressor(p=1)"),
            ("outliers", 'DPLpRegressor(p="huber")'),
        ],
    ),
    (
        "A mean",
        [
            ("in general", "DPMean"),
            ("far from the origin", 'mechanism="coinpress"'),
            ("heavy tails", "DPHeavyTailedMean"),
            ("sparse rows", "DPSparseMeanEstimator"),
        ],
    ),
    (
        "A median, a quantile",
        [
            ("of a feature", "DPMedian, DPQuantile"),
            ("of norms of rows", "DPNormQuantile"),
        ],
    ),
    (
        "A look at the table",
        [
            ("all columns", "dp_describe"),
            ("counts", "DPHistogram"),
            ("covariances", "DPCovariance"),
            ("principal components", "DPPCA"),
        ],
    ),
    (
        "Scores of a model",
        [
            ("curves and losses", "DPClassificationScores"),
            ("confusion matrix", "DPConfusionMatrix"),
            ("regression", "DPRegressionScores"),
        ],
    ),
    (
        "Preprocessing",
        [
            ("a data frame", "DPTableVectorizer"),
            ("public bounds: free", "BoundedScaler"),
            ("public norm: free", "NormClipper"),
            ("Fourier features: free", "RandomFourierFeatures"),
            ("unknown units", "DPStandardScaler"),
            ("an unknown offset", "DPFeatureCenterer"),
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


def box(y, height, fill, radius):
    """Return a rounded rectangle as wide as the chart."""
    return (
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="{radius}" '
        f'fill="{fill}" stroke="{RULE}"/>'
    )


def asked(y, words):
    """Return the box of a question that starts at height y, and where it ends."""
    middle = text(WIDTH / 2, y + 23, words, anchor="middle", bold=True)
    return [box(y, 36, QUESTION, 14), middle], y + 36


def answers(y, title, lines):
    """Return the box of answers that starts at height y, and where it ends."""
    height = LINE * (len(lines) + 1) + 14
    parts = [box(y, height, ANSWER, 6), text(LEFT + 10, y + 22, title, bold=True)]
    for i, (condition, name) in enumerate(lines, 2):
        parts.append(text(LEFT + 10, y + i * LINE, condition, size=14, fill=GREY))
        parts.append(text(NAME, y + i * LINE, name, size=13, mono=True))
    return parts, y + height


def arrow(y, words):
    """Return an arrow down from height y, with what leads on, and where it ends."""
    middle = WIDTH / 2
    line = (
        f'<line x1="{middle}" y1="{y}" x2="{middle}" y2="{y + GAP - 3}" stroke="{INK}" '
        'stroke-width="1.5" marker-end="url(#head)"/>'
    )
    return [line, text(middle + 10, y + GAP / 2 + 5, words, bold=True)], y + GAP


def chart():
    """Return the chart as the text of an SVG file."""
    parts, y = [], 4
    for words, title, lines, onward in QUESTIONS:
        asks, y = asked(y, words)
        says, y = answers(y + 6, title, lines)
        leads, y = arrow(y, onward)
        parts += asks + says + leads
    asks, y = asked(y, "What do you want?")
    parts += asks
    for title, lines in TASKS:
        says, y = answers(y + 6, title, lines)
        parts += says
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" '
        f'width="{WIDTH}" height="{y + 4}" role="img">'
        "<title>Which estimator: a chart of questions and answers</title>"
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{y + 4}" fill="#ffffff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(chart(), encoding="utf-8")
