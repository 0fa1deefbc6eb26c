# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Print the oldest versions that setup.cfg allows: python oldest.py setup.cfg [EXTRA ...]."""

import configparser
import re
import sys

config = configparser.ConfigParser(interpolation=None)
config.read(sys.argv[1], encoding="utf-8")
wanted = config["options"]["install_requires"].split()
for extra in sys.argv[2:]:
    wanted += config["options.extras_require"][extra].split()
for requirement in dict.fromkeys(wanted):
    if requirement.startswith("%("):
        continue  # another extra, which has to be named itself
    bound = re.fullmatch(r"([\w\[\],-]+)[>=]=([\w.]+)", requirement)
    if bound is None:
        sys.exit(f"{requirement} in {sys.argv[1]} has no lower bound")
    print(f"{bound[1]}=={bound[2]}")
