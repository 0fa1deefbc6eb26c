# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A chart as an SVG file, for when matplotlib is not installed."""

import math
from pathlib import Path

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 620, 45, 350


def save_chart(path, x, mean, spread, lines, *, limits, label, title, xlabel, ylabel):
    """Draw a curve with a band over a logarithmic axis, and horizontal lines.

    Parameters
    ----------
    path : str
        Where to write.
    x, mean, spread : sequence of float
        The curve and half the width of its band; x is positive and increasing.
    lines : dict of str to float
        Heights of dashed lines, by what is written above them.
    limits : tuple of float
        Lowest and highest value of the vertical axis.
    label, title, xlabel, ylabel : str
        Texts; the first stands at the end of the curve.

    Returns
    -------
    path : Path
        Absolute path of the file.
    """
    span = math.log(x[-1] / x[0])
    low, high = limits

    def at(value, height):
        across = LEFT + 20 + (RIGHT - LEFT - 40) * math.log(value / x[0]) / span
        return f"{across:.1f},{BOTTOM - (BOTTOM - TOP) * (height - low) / (high - low):.1f}"

    def text(position, words, anchor="middle", extra=""):
        a, b = position.split(",")
        return f'<text x="{a}" y="{b}" text-anchor="{anchor}" {extra}>{words}</text>'

    def line(start, end, style):
        (a, b), (c, d) = start.split(","), end.split(",")
        return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" {style}/>'

    upper = [at(v, m + s) for v, m, s in zip(x, mean, spread, strict=True)]
    lower = [at(v, m - s) for v, m, s in zip(x, mean, spread, strict=True)]
    curve = [at(v, m) for v, m in zip(x, mean, strict=True)]
    middle = (LEFT + RIGHT) / 2
    parts = []
    step = 10 ** math.floor(math.log10(high - low)) / 5
    for tick in (step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)):
        y = at(x[0], tick).split(",")[1]
        parts.append(line(f"{LEFT},{y}", f"{RIGHT},{y}", 'stroke="#ddd"'))
        parts.append(text(f"{LEFT - 8},{float(y) + 5}", f"{tick:.2f}", "end"))
    for value in x:
        parts.append(text(f"{at(value, low).split(',')[0]},{BOTTOM + 20}", f"{value:g}"))
    for words, height in lines.items():
        y = at(x[0], height).split(",")[1]
        parts.append(line(f"{LEFT},{y}", f"{RIGHT},{y}", 'stroke="black" stroke-dasharray="6,4"'))
        parts.append(text(f"{LEFT + 6},{float(y) - 6}", words, "start"))
    parts += [
        f'<polygon points="{" ".join(upper + lower[::-1])}" fill="#ccc"/>',
        f'<polyline points="{" ".join(curve)}" fill="none" stroke="#1f77b4" stroke-width="2"/>',
        *(f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="4"/>' for p in curve),
        text(at(x[-1], mean[-1] - (high - low) / 8), label, "end"),
        text(f"{middle},{TOP - 18}", title),
        text(f"{middle},{BOTTOM + 50}", xlabel),
        text(
            f"20,{(TOP + BOTTOM) / 2}",
            ylabel,
            extra=f'transform="rotate(-90 20 {(TOP + BOTTOM) / 2})"',
        ),
    ]
    frame = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="sans-serif" '
        f'font-size="14" fill="#1f77b4"><rect width="100%" height="100%" fill="white"/>'
        f"<style>text {{ fill: black }}</style>{''.join(parts)}</svg>\n",
        encoding="utf-8",
    )
    return Path(path).resolve()
