# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The machine and the versions behind a table of measurements, in words."""

import importlib.metadata
import os
import platform
from pathlib import Path

__all__ = ["machine", "versions"]


def _processor():
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def machine():
    """Return processor, cores, memory and system in one line.

    Returns
    -------
    text : str
        Without the name of the machine.
    """
    parts = [_processor(), f"{os.cpu_count()} cores"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{size / 2**30:.0f} GiB")
    return ", ".join([*parts, platform.system(), f"Python {platform.python_version()}"])


def versions(*packages):
    """Return the installed versions of packages in one line.

    Parameters
    ----------
    *packages : str
        Names of distributions.

    Returns
    -------
    text : str
        Those that are installed.
    """
    found = {p.metadata["Name"]: p.version for p in importlib.metadata.distributions()}
    return ", ".join(f"{name} {found[name]}" for name in packages if name in found)
