# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation: its code runs, and it says all that it must."""

import ast
import configparser
import doctest
import importlib
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

import skdp
import skdp.audit
import skdp.exceptions
import skdp.federated
import skdp.inspection
import skdp.io
import skdp.local
import skdp.model_selection
import skdp.privacy
from skdp.solvers.exponential import EXACT_LIMIT, ExactDraw

ROOT = Path(__file__).resolve().parent.parent
#: elsewhere than in ROOT, where the tests run against an installed wheel
PACKAGE = Path(skdp.__file__).parent
DOCS = ROOT / "docs"
PAGES = [
    *(DOCS / f"{name}.rst" for name in ("index", "install", "reviewers", "papers")),
    *sorted((DOCS / "user_guide").glob("*.rst")),
]
#: the page whose code needs packages that no extra has; `.ci/integrations` runs it
ELSEWHERE = "integrations"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def read(path):
    return path.read_text(encoding="utf-8")


def fenced(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", read(ROOT / "README.md"), re.M | re.S)


def tracked_text_files():
    """Yield (path, text) of what git tracks or would track; without git, of all but outputs."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout.split("\0")  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        folders = ("skdp", "tests", "docs", "examples", "benchmarks")
        listed = [str(p.relative_to(ROOT)) for f in folders for p in (ROOT / f).rglob("*.*")]
    for name in listed:
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png", ".pyc", ".npz", ".xz"}:
            yield name, path.read_text(encoding="utf-8", errors="replace")


def test_readme_has_exactly_two_set_up_commands():
    assert fenced("bash") == [
        "pip install . && python examples/plot_01_quickstart.py\n",
        'pip install ".[test]" && pytest\n',
    ]
    assert read(ROOT / "README.md").count("```") == 2 * len(fenced("bash") + fenced("python"))


@pytest.mark.full
def test_six_lines_of_the_readme_run(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (block,) = fenced("python")
    assert len(block.split("\n\n")[0].splitlines() + block.split("\n\n")[1].splitlines()) == 6
    space = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), space)
    assert space["model"].score(space["X"], space["y"]) > 0.84
    card = capsys.readouterr().out
    assert "epsilon = 1 nats" in card
    assert "% sure" in card


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", read(ROOT / "README.md"))
    assert links
    for link in links:
        assert link.startswith(home()) or (ROOT / link).is_file(), link


def home():
    """Return where setup.cfg says that the project is, and where its pages are."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    url = config["metadata"]["url"]
    (pages,) = re.findall(r"Documentation = (\S+)", config["metadata"]["project_urls"])
    return url, pages


def test_one_place_says_where_the_project_is():
    """Whoever moves the project changes setup.cfg, and every file that is named here."""
    url, pages = home()
    owner = url.removesuffix("/skdp").rsplit("/", 1)[1]
    assert pages == f"https://{owner}.github.io/skdp"
    elsewhere = r"https://(?:github\.com/[\w-]+|[\w-]+\.github\.io)/skdp\b"
    for name, text in tracked_text_files():
        if name != "tests/test_docs.py":
            assert set(re.findall(elsewhere, text)) <= {url, pages}, name
    for name in ("README.md", "CITATION.cff", ".ci/conda/recipe.yaml"):
        assert url in read(ROOT / name), name


def test_the_recipe_has_the_bounds_of_the_metadata():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    options, recipe = config["options"], read(ROOT / ".ci" / "conda" / "recipe.yaml")
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    bounds = re.findall(r"- ([\w-]+) (>=[\d.]+)$", run, re.M)
    assert sorted(map("".join, bounds)) == sorted(options["install_requires"].split())
    assert f'python_min: "{options["python_requires"].removeprefix(">=")}"' in recipe


def test_a_release_needs_one_version_everywhere(tmp_path):
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    names = ("skdp/__init__.py", "CITATION.cff", ".ci/conda/recipe.yaml", "CHANGELOG.md")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        where = PACKAGE.parent if name.startswith("skdp/") else ROOT
        (tmp_path / name).write_text(read(where / name), encoding="utf-8")
    tag = f"v{skdp.__version__}"
    # not yet released, so that the changelog alone is in the way
    found = release.disagreements(tag, tmp_path)
    assert found in ([], [f"CHANGELOG.md does not say {skdp.__version__}"])
    text = read(ROOT / "CHANGELOG.md").replace(
        "## [Unreleased]", f"## [{skdp.__version__}] - 2030-01-01", 1
    )
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert release.disagreements(tag, tmp_path) == []
    assert len(release.disagreements("v99.0.0", tmp_path)) == len(names)
    assert "three numbers" in release.disagreements("0.1", tmp_path)[0]


def test_the_text_for_an_index_stands_alone_and_its_example_runs(capsys):
    text = read(DOCS / "package_index.md")
    assert "](" not in text  # nothing to click on that is not there
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    space = {"__name__": "package_index"}
    exec(compile(block, "package_index.md", "exec"), space)
    assert space["epsilon"] <= 2.0
    assert space["delta"] == 1e-5
    assert "replace-one" in capsys.readouterr().out


def test_readme_has_ten_names_and_says_how_many_more_there_are():
    text = read(ROOT / "README.md")
    table = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert len(set(table)) == len(table) == 10
    assert set(table) <= set(skdp.__all__)
    assert f"There are {len(skdp.__all__) - 10} more names" in text


@pytest.mark.skipif(not (ROOT / "skdp").is_dir(), reason="a wheel has no READMEs of folders")
def test_every_module_is_in_the_readme_of_its_folder():
    files = [path for path in PACKAGE.glob("*/**/*.py") if path.name != "__init__.py"]
    assert len(files) > 100
    for path in files:
        folder = path.parent.relative_to(PACKAGE)
        assert f"`{path.name}`" in read(ROOT / "skdp" / folder / "README.md"), folder / path.name


def test_the_picture_of_the_readme_is_there():
    assert re.findall(r"!\[[^]]{40,}\]\((docs/_static/\w+\.svg)\)", read(ROOT / "README.md"))


@pytest.mark.full
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != ELSEWHERE], ids=lambda page: page.stem
)
def test_doctests_of_pages_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8"
    )
    assert failed == 0


def test_the_page_about_other_libraries_is_run_by_a_command():
    assert f"source/docs/user_guide/{ELSEWHERE}.rst" in read(ROOT / ".ci" / "integrations")
    page = read(DOCS / "user_guide" / f"{ELSEWHERE}.rst")
    sections = re.split(r"^\.\. _(\w+):$", page, flags=re.M)[3:]
    assert sections[::2] == ["onnx", "mlflow", "shap", "pmml"]
    parser = doctest.DocTestParser()
    for section in sections[1::2]:
        assert "to_sklearn()" in section
        assert [example for example in parser.get_examples(section) if example.want == "True\n"]


def test_from_a_file_to_a_model_it_is_fifteen_lines():
    lines = re.findall(r"^(?:>>>|\.\.\. )", read(DOCS / "user_guide" / "first_model.rst"), re.M)
    assert 10 < len(lines) <= 15


def test_most_pages_have_code_that_runs():
    parser = doctest.DocTestParser()
    with_code = {page.stem for page in PAGES if parser.get_examples(read(page))}
    assert with_code >= {"index", "what_is_promised", "linear_model", "location", "preprocessing"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_code_of_pages_escapes_the_doctests(page):
    assert not re.search(r"code-block:: *(python|pycon)|testcode::|doctest::", read(page))


@pytest.mark.parametrize(
    ("module", "where"),
    [
        (skdp, "skdp"),
        (skdp.privacy, "skdp.privacy"),
        (skdp.audit, "skdp.audit"),
        (skdp.federated, "skdp.federated"),
        (skdp.inspection, "skdp.inspection"),
        (skdp.io, "skdp.io"),
        (skdp.local, "skdp.local"),
        (skdp.metrics, "skdp.metrics"),
        (skdp.model_selection, "skdp.model_selection"),
        (skdp.exceptions, "skdp.exceptions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_public_name_is_in_the_api(module, where):
    documented, current = {}, None
    for line in read(DOCS / "api.rst").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            current = match[1]
        elif match := re.match(r"   (\w+)$", line):
            documented.setdefault(match[1], importlib.import_module(current))
    names = getattr(module, "__all__", [n for n in vars(module) if n[0].isupper()])
    for name in names:
        assert name in documented, f"{where}.{name} is not in docs/api.rst"
        assert getattr(documented[name], name) is getattr(module, name)


def test_every_page_of_the_guide_is_in_its_index():
    guide, proofs = (read(DOCS / "user_guide" / f"{name}.rst") for name in ("index", "proofs"))
    assert "   user_guide/proofs\n" in read(DOCS / "index.rst")
    for page in (DOCS / "user_guide").glob("*.rst"):
        index = proofs if page.stem.startswith("proofs_") else guide
        assert page.stem in ("index", "proofs") or f"   {page.stem}\n" in index, page.name


def test_no_page_and_no_lesson_imports_a_private_module():
    private = r"(?:from|import) +skdp[\w.]*\._\w|from +skdp[\w.]* +import +\(?\s*_\w"
    more = [DOCS / "package_index.md", *ROOT.glob("*.md"), *(ROOT / "examples").glob("*.py")]
    for page in [*PAGES, *(DOCS / "benchmarks").glob("*.rst"), *more]:
        found = re.search(private, read(page))
        assert found is None, f"{page.name}: {found[0] if found else ''}"


def test_every_picture_has_words_and_every_title_is_said_once():
    titles = []
    for page in [*PAGES, *(DOCS / "benchmarks").glob("*.rst")]:
        text = read(page)
        titles += re.findall(r"\A(?:\s*(?:\.\.|:).*\n)*\s*(.+)\n=+$", text, re.M)
        for options in re.findall(r"^ *\.\. (?:image|figure)::.*\n((?: +:.*\n)*)", text, re.M):
            assert re.search(r":alt: \S+ \S+", options), page.name
    assert len(titles) == len(set(titles)) > 50


def names_within(node):
    """Return the names of the methods and attributes in the body of a class."""
    names = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    names |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
    assigned = [part for part in node.body if isinstance(part, ast.Assign)]
    targets = [one for part in assigned for target in part.targets for one in ast.walk(target)]
    return names | {one.id for one in targets if isinstance(one, ast.Name)}


def test_every_query_and_its_code_is_in_the_proofs():
    proofs = "\n".join(read(page) for page in sorted((DOCS / "user_guide").glob("proofs*.rst")))
    for name in re.findall(r"``(skdp/[\w/]+\.py)``", proofs):
        assert (PACKAGE.parent / name).is_file(), name
    names = set()
    for path in PACKAGE.rglob("*.py"):
        found = [node for node in ast.parse(read(path)).body if isinstance(node, ast.ClassDef)]
        stating = {node.name for node in found if "sensitivity" in names_within(node)}
        for node in found:
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            # a base has no name of a statistic; the protocol is no statistic
            if "name" in names_within(node) and "Protocol" not in bases:
                names |= {node.name} if stating & {node.name, *bases} else set()
    assert len(names) >= 30
    for name in sorted(names):
        assert re.search(rf"^{name}\n-+$", proofs, re.M), f"{name} has no proof"


def test_propositions_are_numbered_through():
    numbers = []
    for page in sorted((DOCS / "user_guide").glob("proofs*.rst")):
        found = [int(n) for n in re.findall(r"^\*\*Proposition (\d+)\b", read(page), re.M)]
        assert found == sorted(found), page.name
        numbers += found
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 39
    for path in [*PACKAGE.rglob("*.py"), *DOCS.glob("user_guide/*.rst")]:
        for named in re.findall(
            r"Propositions? ((?:\d+(?:,\s+|\s+and\s+|\s+to\s+)?)+)", read(path)
        ):
            assert max(int(n) for n in re.findall(r"\d+", named)) <= len(numbers), path.name


@pytest.mark.parametrize("name", ["reviewers", "papers"])
def test_files_tests_and_propositions_that_a_page_names_exist(name):
    page = read(DOCS / f"{name}.rst")
    tests = "\n".join(read(path) for path in (ROOT / "tests").rglob("test_*.py"))
    for path in re.findall(r"\b((?:skdp|tests|benchmarks)/[\w/]+(?:\.py|/))", page):
        where = PACKAGE.parent if path.startswith("skdp/") else ROOT
        assert (where / path).exists(), path
    for test in re.findall(r"``(test_\w+)``", page):
        assert f"def {test}(" in tests, test
    proofs = [read(path) for path in (DOCS / "user_guide").glob("proofs*.rst")]
    named = re.findall(r":ref:`Propositions? (\d+)(?:[^`<]*?(\d+))? <([\w-]+)>`", page)
    assert named
    for first, last, label in named:
        text = next(text for text in proofs if f".. _{label}:\n" in text)
        if f"_{label}:" not in text.split("===")[0]:  # a label of a section, not of the page
            text = re.split(r"^\.\. _[\w-]+:$", text.split(f".. _{label}:\n")[1], flags=re.M)[0]
        for number in filter(None, (first, last)):
            assert re.search(rf"^\*\*Proposition {number}\b", text, re.M), (number, label)


def test_every_row_of_the_papers_names_the_command_of_its_figure():
    page = read(DOCS / "papers.rst")
    rows = re.findall(r"^   \* - (.*?)(?=^   \* - |^\S|\Z)", page, re.M | re.S)
    rows = [row for row in rows if not row.startswith("In the paper")]
    assert len(rows) > 70
    for row in rows:
        figure = row.rstrip().split("\n     - ")[-1]
        command = re.search(r"\n       Command: ((?:``[^`]+``(?:, )?)+)\Z", figure)
        if command is None:
            # nothing was measured, so that nothing may look as if it was
            assert re.search(r"(?:\A|\s)No figure\.\Z", figure), row
            continue
        for call in re.findall(r"``([^`]+)``", command[1]):
            script = re.fullmatch(r"(?:python|pytest) ([\w/]+\.py)(?: .+)?", call)
            assert script, call
            assert (ROOT / script[1]).is_file(), call


def attacks():
    """Return the cells of every line of the table of attacks."""
    page = read(DOCS / "user_guide" / "pitfalls.rst").split(".. _attacks:")[1]
    _, *lines = re.split(r"^   \* - ", page.split("\nNot in this table")[0], flags=re.M)
    return [re.split(r"^     - ", line, flags=re.M) for line in lines[1:]]


@pytest.mark.full
def test_every_line_of_the_table_of_attacks_has_a_test_of_the_default_tier():
    tests, left_out = {}, set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(read(path))
        marks = [ast.unparse(n) for n in tree.body if ast.unparse(n).startswith("pytestmark")]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                decorators = [*marks, *map(ast.unparse, node.decorator_list)]
                if re.search(r"mark\.(full|slow)\b(?! if)", " ".join(decorators)):
                    left_out.add(node.name)
                tests[node.name] = path
    found = attacks()
    assert len(found) >= 23
    for line in found:
        assert len(line) == 4, line
        names = re.findall(r"``(test_\w+)``", line[3])
        assert names, line
        for name in names:
            assert name in tests, name
            assert name not in left_out, f"{name} is not in the default tier"


def test_reviewers_are_told_of_every_file_of_the_gate():
    page = read(DOCS / "reviewers.rst")
    for path in (PACKAGE / "privacy").glob("_[a-z]*.py"):
        assert f"``{path.stem}``" in page, path.name


def test_labels_of_pages_are_unique():
    text = "\n".join(read(page) for page in DOCS.rglob("*.rst"))
    labels = re.findall(r"^\.\. _([\w-]+):$", text, re.M)
    assert len(labels) == len(set(labels))


def claims_extension():
    spec = importlib.util.spec_from_file_location("claims", DOCS / "_ext" / "claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_table_of_claims_covers_every_combination():
    claims = claims_extension()
    rows = list(claims.rows())
    assert all(len(row) == len(claims.COLUMNS) for row in rows)
    names = {estimator.__name__ for estimator in claims.private_estimators()}
    assert {row[0] for row in rows} == {f":class:`~skdp.{name}`" for name in names}
    for path in {path for tests in claims.TESTS.values() for path in tests.split()}:
        assert (ROOT / path).is_file(), path
    for name in ("DPLogisticRegression", "DPHingeSVM"):
        shown = {row[1] for row in rows if row[0].endswith(f"{name}`")}
        for kind in claims.KINDS:
            pattern = rf"{kind.mechanism}, .*\b{kind.__name__}\b"
            assert any(re.match(pattern, cell) for cell in shown)
    laws = {row[claims.COLUMNS.index("Noise")].split(",")[0] for row in rows}
    assert laws == set(claims.NORMS)


@pytest.mark.slow
def test_the_table_of_claims_leaves_out_only_what_must_be():
    claims = claims_extension()
    for estimator in (skdp.DPLogisticRegression, skdp.DPHingeSVM):
        for _, given in claims.configurations(estimator):
            if claims.fitted_ledger(estimator, given) is None:
                if given["adjacency"] == "add-remove" and not given["solver"].takes_groups:
                    continue
                # three classes of four coefficients each
                assert isinstance(given["solver"], ExactDraw)
                assert 4 * len(given["classes"]) > EXACT_LIMIT


def test_version_is_the_same_everywhere():
    assert f"\nversion: {skdp.__version__}\n" in read(ROOT / "CITATION.cff")


def test_no_file_mentions_the_machine_it_was_made_on():
    # spelled so that this file passes its own test
    absolute = r"(?<![\w.\-/:~}$\"'])/(?:work|home|root|opt|tmp|Users|mnt)/[\w.]"
    quoted = r"[\"'](?:/home/|/root/|/opt/|/Users/)\w"
    for name, text in tracked_text_files():
        if name == "tests/test_docs.py":
            continue
        found = re.search(f"{absolute}|{quoted}", text)
        assert found is None, f"{name} mentions {found[0] if found else ''}"


def prose(page):
    """Return a page without code, names of classes, and titles of papers."""
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
    text = re.sub(r"``[^`]+``|`[^`]+`|^\w+\n-+$", "", text, flags=re.M)
    return re.sub(r"^- [A-Z](?:(?!\n\n|\n- ).)*?\",", "", text, flags=re.M | re.S)


def test_words():
    """British spelling, and no word that promises more than the definition."""
    american = r"neighbor|normaliz(?!er)|minimiz|summariz|randomiz(?!edSearchCV)"
    more = [DOCS / "api.rst", DOCS / "package_index.md", ROOT / "examples" / "README.rst"]
    for page in [*PAGES, *more, *ROOT.glob("*.md")]:
        found = re.search(rf"{american}|anonym|safely", prose(page), re.I)
        assert found is None, f"{page.name}: {found[0] if found else ''}"


def test_the_guide_to_groups_has_the_figures_of_the_page():
    cells = r"(1 to 100|\d+)\n" + 5 * r" +- ([\d.]+)\n"
    measured = re.findall(r"\* - made\n +- " + cells, read(DOCS / "benchmarks" / "people.rst"))
    assert len(measured) == 5
    assert re.findall(r"\* - " + cells, read(DOCS / "user_guide" / "groups.rst")) == measured
