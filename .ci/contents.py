# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Compare what was packed with the source: python contents.py SOURCE SDIST WHEEL."""

import sys
import tarfile
import zipfile
from pathlib import Path

source, sdist, wheel = map(Path, sys.argv[1:])
files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
files -= {".gitignore"}
# a README of a folder is for readers of the source
package = {n for n in files if n.startswith("skdp/") and not n.endswith("/README.md")}

with tarfile.open(sdist) as archive:
    packed = {m.name.split("/", 1)[1] for m in archive.getmembers() if m.isfile()}
made = {name for name in packed if name.startswith("skdp.egg-info/")} | {"PKG-INFO"}
with zipfile.ZipFile(wheel) as archive:
    installed = {name for name in archive.namelist() if ".dist-info/" not in name}

wrong = [
    *(f"not in the source distribution: {name}" for name in sorted(files - packed)),
    *(f"made up in the source distribution: {name}" for name in sorted(packed - made - files)),
    *(f"not in the wheel: {name}" for name in sorted(package - installed)),
    *(f"should not be in the wheel: {name}" for name in sorted(installed - package)),
]
print(f"{len(packed)} files in {sdist.name}, {len(installed)} in {wheel.name}", *wrong, sep="\n")
sys.exit(bool(wrong))
