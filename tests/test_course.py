# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The examples are a course, its lessons are linked, and the first page shows what was measured."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def read(path):
    return path.read_text(encoding="utf-8")


def lessons():
    return sorted((ROOT / "examples").glob("plot_*.py"))


def test_the_course_is_numbered_without_holes_and_in_its_table_of_contents():
    stems = [path.stem for path in lessons()]
    assert [int(stem.split("_")[1]) for stem in stems] == list(range(1, len(stems) + 1))
    contents = re.findall(
        r"^(\d+)\. :ref:`sphx_glr_auto_examples_(\w+)\.py`: \w",
        read(ROOT / "examples" / "README.rst"),
        re.M,
    )
    assert contents == [(str(number), stem) for number, stem in enumerate(stems, 1)]


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_a_lesson_says_what_it_teaches_what_was_promised_and_where_to_go_on(path):
    text, stems = read(path), [lesson.stem for lesson in lessons()]
    number, numbers = stems.index(path.stem), range(len(stems))
    assert len(text.splitlines()) < 250
    assert "*You learn* " in text.split('"""')[1]
    assert "*It builds on*" in text.split('"""')[1] or number == 0
    sections = re.findall(r"^# (.+)\n# [-=]{4,}$", text, re.M)
    assert sections[-1] == "What was promised"
    end = text.split("# What was promised\n")[1]
    for words, there in (("Before", number - 1), ("After", number + 1)):
        link = f"# | {words} this: :ref:`sphx_glr_auto_examples_"
        assert (link in end) == (there in numbers)
        assert there not in numbers or f"{link}{stems[there]}.py`" in end


def test_every_lesson_that_is_linked_exists():
    pages = [*DOCS.glob("*.rst"), *(DOCS / "user_guide").glob("*.rst"), *lessons()]
    pages += [*(DOCS / "benchmarks").glob("*.rst"), ROOT / "examples" / "README.rst"]
    for page in pages:
        text = read(page)
        linked = re.findall(r"sphx_glr_auto_examples_(\w+)\.py", text)
        linked += re.findall(r"examples/(plot_\w+)\.py", text)
        for stem in linked:
            assert (ROOT / "examples" / f"{stem}.py").is_file(), (page.name, stem)


def test_the_picture_of_the_first_page_shows_what_its_words_say():
    spec = importlib.util.spec_from_file_location("chart", DOCS / "_ext" / "landing_chart.py")
    chart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chart)
    found = chart.lost(chart.table())
    assert len(found) == 8
    first, readme = read(DOCS / "index.rst"), read(ROOT / "README.md")
    assert first.count(":alt: ") == first.count(".. image:: ") == len(chart.INKS)
    # what its alternative text and the README say, in the mean
    for method, who in (("skdp", "eight tables lose"), ("diffprivlib", "diffprivlib loses")):
        mean = f"{sum(each[method] for each in found.values()) / len(found):.1f}"
        plain = " ".join(readme.split())
        assert f"{who} {mean} points" in plain.replace("where ", "")
        assert mean in first
    page = read(DOCS / "benchmarks" / "careless.rst")
    for name, figures in chart.table().items():
        cells = re.search(rf"\* - {name}\n((?:     - .*\n)+)", page.split("What is lost")[1])[1]
        assert f"{figures['skdp']:.1f}" in cells
        assert f"{figures['diffprivlib']:.1f}" in cells
