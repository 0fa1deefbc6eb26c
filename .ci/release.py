# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check that all files agree on the version of a tag: python .ci/release.py v0.1.0."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def disagreements(tag, root=ROOT):
    """Return what stands in the way of a release under this tag, a sentence each."""
    version = tag.removeprefix("v")
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        return [f"a tag is v and three numbers, as v0.1.0; got {tag}"]
    places = {
        "skdp/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
        ".ci/conda/recipe.yaml": rf'^  version: "{re.escape(version)}"$',
        "CHANGELOG.md": rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$",
    }
    texts = {name: (root / name).read_text(encoding="utf-8") for name in places}
    wrong = [
        f"{name} does not say {version}"
        for name, pattern in places.items()
        if not re.search(pattern, texts[name], re.M)
    ]
    section = re.split(r"^## ", texts["CHANGELOG.md"], flags=re.M)
    section = next((part for part in section if part.startswith(f"[{version}]")), "")
    if section and "### Changed guarantees" not in section:
        wrong.append('the version in CHANGELOG.md has no section "Changed guarantees"')
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = disagreements(sys.argv[1])
    print(*found, sep="\n")
    sys.exit(bool(found))
