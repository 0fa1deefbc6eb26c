# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The changelog has its form, and a line for every public name."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import skdp

TEXT = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
MODULES = [f.name for f in pkgutil.iter_modules(skdp.__path__) if not f.name.startswith("_")]
#: of Keep a Changelog, and the two that are ours
SECTIONS = [
    "Added", "Changed guarantees", "Changed models", "Changed", "Deprecated", "Removed", "Fixed",
]  # fmt: skip


def released():
    """Return the sections of every version, in their order: {version: {section: text}}."""
    parts = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    found = {}
    for part in parts:
        title, *sections = re.split(r"^### ", part, flags=re.MULTILINE)
        found[title.strip()] = dict(section.split("\n", 1) for section in sections)
    return found


def test_versions_are_named():
    for title in released():
        assert re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title), title


@pytest.mark.parametrize("version", released())
def test_every_version_has_known_sections_in_order(version):
    sections = list(released()[version])
    assert sections == [name for name in SECTIONS if name in sections]
    # what a reviewer looks for is there even if there is nothing to say
    assert "Changed guarantees" in sections
    for text in released()[version].values():
        # entries, and a sentence before them where it is needed
        assert re.search(r"^- \S", text, flags=re.MULTILINE)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_entry(module):
    public = importlib.import_module(f"skdp.{module}")
    names = getattr(public, "__all__", [name for name in vars(public) if name[0].isupper()])
    missing = set(names) - set(re.findall(r"\w+", TEXT))
    assert not missing
