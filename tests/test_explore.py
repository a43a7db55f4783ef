"""`dcme-w2v explore`: the page, in a real browser without a network, and errors.

The tests in a browser need playwright and the system's chromium.
"""

import base64
import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, save
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v import Vectors
from dcme_w2v.cli.main import run
from dcme_w2v.explore.items import read_items
from dcme_w2v.explore.page import layout_of, similar_groups
from dcme_w2v.plots.layout import ITERATIONS

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
HOSTILE = ["<script>document.title='bad'</script>", "<img/src=x/onerror=document.title='bad'>",
           "</script><b>bold</b>", "%SCRIPT%", "-minus", "&amp;", "köln", "a'\"`b"]  # fmt: skip
BLOCKED = "https://example.org"  # a test requests it
PCA = ["--method", "pca", "--quiet"]


def vectors(path, seed=0, count=300):
    """Write words of five topics and words with markup; return the path as text."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(5, 20)) * 2
    words = HOSTILE + [f"w{i}" for i in range(count - len(HOSTILE))]
    matrix = centers[np.arange(count) % 5] + random.normal(size=(count, 20))
    return str(save(path, words, matrix))


def page(tmp_path, *arguments):
    """Make a page; return its path."""
    out = tmp_path / "page.html"
    assert run(["explore", *arguments, "--output", str(out), *PCA]) == 0
    return out


def block(text, name):
    """Return the data of one block of a page."""
    packed = re.search(rf'<script type="application/octet-stream" id="{name}">([^<]*)<', text)[1]
    return gzip.decompress(base64.b64decode(packed))


# ---- the file ----


def test_a_page_contains_its_data_and_forbids_the_network(tmp_path):
    path = vectors(tmp_path / "v.npy")
    text = page(tmp_path, path).read_text(encoding="utf-8")
    assert page(tmp_path, path).read_text(encoding="utf-8") == text
    loaded = Vectors.load(path)
    assert json.loads(block(text, "names0")) == list(loaded.words)
    short = np.frombuffer(block(text, "vectors0"), dtype=np.int8).reshape(loaded.vectors.shape)
    exact = loaded.vectors / np.abs(loaded.vectors).max(axis=1, keepdims=True) * 127
    assert np.abs(short - exact).max() <= 0.51
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("script", "style"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"https?://|\bsrc=|\bhref=|url\(", text.replace("http-equiv", ""))
    assert "bold" not in text and "onerror" not in text  # words are in the blocks only


def test_a_layout_by_tsne_keeps_topics_together(tmp_path):
    pytest.importorskip("openTSNE")
    items = read_items(vectors(tmp_path / "v.npy", count=200), None, 1, 200, 1)
    seen = []
    points = layout_of(items, "tsne", 1, seen.append)
    assert seen[-1] == ITERATIONS and points.shape == (200, 2)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(200) * 1e9
    topic = np.arange(200) % 5
    assert (topic[apart.argmin(axis=1)] == topic).mean() > 0.9


def test_similar_words_share_a_color_and_labels_name_them_at_each_level():
    random = np.random.default_rng(0)
    centers = random.normal(size=(40, 20)) * 3
    topic = np.arange(2000) % 40
    matrix = centers[topic] + random.normal(size=(2000, 20)) * 0.5
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    names, points = [f"t{t}_{i}" for i, t in enumerate(topic)], matrix[:, :2].astype(np.float64)
    colors, labels = similar_groups(matrix, names, points, 1)
    assert all(len(set(colors[topic == one].tolist())) <= 2 for one in range(40))
    assert 5 < len(set(colors.tolist())) <= 10
    assert [max(label.level for label in labels), min(label.level for label in labels)] == [2, 0]
    for words, row, level, color in labels:
        assert colors[names.index(words[0])] == colors[row] == color
        assert level > 0 or names.index(words[-1]) < 1000  # a frequent word, not a rare one
    assert similar_groups(matrix[:20], names, points[:20], 1)[1] == []


def test_rows_of_documents_with_labels_and_titles(tmp_path):
    random = np.random.default_rng(0)
    save_npz(tmp_path / "r.npz", csr_matrix(random.random((30, 150)).astype(np.float32)))
    lines = [f"{'xyz'[i % 3]}\ttext <b>{i % 28}</b> {'long ' * 30}\n" for i in range(30)]
    (tmp_path / "labels").write_text("".join(lines))
    flags = ["--labels", str(tmp_path / "labels")]
    text = page(tmp_path, str(tmp_path / "r.npz"), *flags).read_text()
    [about] = json.loads(block(text, "about"))
    assert (about["rows"], about["dim"], about["about"]) == (
        30,
        29,
        "30 documents of 29 dimensions",
    )
    assert [label[0] for label in about["labels"]] == [["x"], ["y"], ["z"]]
    names = json.loads(block(text, "names0"))
    assert len(set(names)) == 30 and names[4].startswith("text <b>4</b> long")
    assert len(names[4]) <= 80 and names[4].endswith(" ...") and names[29].endswith(" (30)")
    assert set(about["examples"]) <= set(names)
    text = page(tmp_path, str(tmp_path / "r.npz"), *flags, "--color", "2").read_text()
    assert len(json.loads(block(text, "about"))[0]["labels"]) == 28
    (tmp_path / "r.svm").write_text("x 0:1 2:1\ny 1:1\nx 0:2\ny 2:1\n")
    text = page(tmp_path, str(tmp_path / "r.svm"), "--limit", "3").read_text()
    assert json.loads(block(text, "names0")) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("{v} {v} {v}", "3 files; give one, or two to compare"),
        ("{v} --labels {short}", "2 lines for 300 rows"),
        ("{v} --labels {short} --color 2", "short:1: has 1 columns, not 2"),
        ("{v} --labels {bytes}", "bytes:1: is not UTF-8"),
        ("{two}", "2 rows; a map needs 3 at least"),
    ],
)
def test_wrong_use(flags, message, tmp_path, capsys):
    places = {name: str(tmp_path / name) for name in ("short", "bytes", "two")}
    Path(places["short"]).write_text("a\nb\n")
    Path(places["bytes"]).write_bytes(b"\xff\n")
    Path(places["two"]).write_text("a 1\nb 2\n")
    places["v"] = vectors(tmp_path / "v.npy")
    out = tmp_path / "page.html"
    arguments = [flag.format(**places) for flag in flags.split()]
    assert message in refused(capsys, run(["explore", *arguments, "--output", str(out), *PCA]))
    assert not out.exists()


def test_a_missing_extra_and_the_suffix_of_a_picture_are_errors(tmp_path, capsys, monkeypatch):
    flags = ["--output", str(tmp_path / "p.png"), *PCA]
    code = run(["explore", vectors(tmp_path / "v.npy"), *flags])
    assert "name a file that ends in .html" in refused(capsys, code)
    monkeypatch.setitem(__import__("sys").modules, "openTSNE", None)
    flags = ["--output", str(tmp_path / "p.html"), "--quiet"]
    code = run(["explore", vectors(tmp_path / "v.npy"), *flags])
    assert "pip install 'dcme-w2v[explore]', or use --method pca" in refused(capsys, code)


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium; apt-get install chromium")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser):
    """Return a function that opens a page offline; errors and requests are checked at the end."""
    contexts, faults, requests = [], [], []

    def open_page(path, **options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.absolute().as_uri())
        tab.wait_for_selector("body[data-ready]", timeout=60_000)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert [fault for fault in faults if BLOCKED not in fault] == []
    assert len(requests) == len(contexts) and all(url.startswith("file:") for url in requests)


def ask(tab, text):
    """Type a query; return the words and cosines of each answer."""
    tab.fill("#query", text)
    tab.press("#query", "Enter")
    return results(tab)


def results(tab):
    words = tab.locator(".answer ol .word").all_text_contents()
    cosines = tab.locator(".answer ol .cosine").all_text_contents()
    return list(zip(words, map(float, cosines), strict=True))


def test_answers_equal_those_of_the_command_line(tmp_path, opened, capsys):
    path = vectors(tmp_path / "v.npy")
    tab = opened(page(tmp_path, path))
    queries = {"w7": ["neighbors", path, "w7"], "+w1 -w2 +w3": ["neighbors", path, "+w1 -w2 +w3"],
               "w1 w2 w3": ["analogy", path, "w1", "w2", "w3"]}  # fmt: skip
    for text, command in queries.items():
        assert run([*command, "-k", "5"]) == 0
        lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        found = ask(tab, text)
        assert len(found) == 20
        cosines = dict(found)
        for line in lines:
            assert cosines[line[-2]] == pytest.approx(float(line[-1]), abs=0.01)
        assert [cosine for _, cosine in found] == sorted(cosines.values(), reverse=True)
    loaded = Vectors.load(path)
    notes = tab.locator(".note").all_text_contents()
    assert notes == [
        "w1 is to w2 as w3 is to",
        f"odd one out: {loaded.doesnt_match(['w1', 'w2', 'w3'])}",
    ]
    ask(tab, "w1 w2")
    cosine = float(tab.locator(".note").text_content().removeprefix("cosine "))
    assert cosine == pytest.approx(loaded.similarity("w1", "w2"), abs=0.01)
    assert ask(tab, "nowhere") == []
    assert tab.locator(".note").text_content() == "no vector for nowhere"


def test_words_are_text_and_never_html(tmp_path, opened):
    title = tmp_path / "<b>x.npy"
    tab = opened(page(tmp_path, vectors(title), vectors(tmp_path / "b.npy")))
    for word in HOSTILE:
        assert len(ask(tab, word)) == 40, word
    tab.fill("#query", "<")
    assert tab.locator("#completions li").first.text_content() == HOSTILE[0]
    tab.evaluate("app.map.zoom(3)")
    assert tab.title() == "Explore vectors"
    assert tab.locator("b, img").count() == tab.locator("#help b").count()
    assert tab.evaluate(f"fetch('{BLOCKED}').then(() => 'sent', () => 'blocked')") == "blocked"


def test_clicks_keys_and_completion(tmp_path, opened):
    tab = opened(page(tmp_path, vectors(tmp_path / "v.npy")))
    tab.type("#query", "+w1 -w2")
    assert tab.locator("#completions li").all_text_contents()[:2] == ["w2", "w20"]
    tab.press("#query", "ArrowDown")
    tab.press("#query", "ArrowDown")
    tab.press("#query", "Enter")
    assert tab.input_value("#query") == "+w1 -w20"
    first = results(tab)[0][0]
    tab.locator("ol button").first.click()
    assert tab.input_value("#query") == first and len(results(tab)) == 20
    assert tab.evaluate("app.map.hits.length") == 21
    x, y = tab.evaluate("() => { app.map.all(); return app.map.place(app.map.hits[3]) }")
    near = tab.evaluate(f"app.map.at({x}, {y})")
    tab.locator("#map").click(position={"x": x, "y": y})
    assert tab.input_value("#query") == tab.evaluate(f"app.tables[0].names[{near}]")
    assert near >= 0
    tab.focus("#map")
    scale = tab.evaluate("app.map.scale")
    for key in ("+", "ArrowLeft", "ArrowUp"):
        tab.keyboard.press(key)
    assert tab.evaluate("app.map.scale") > scale and tab.evaluate("app.map.centre[0]") != 0
    tab.keyboard.press("0")
    assert tab.evaluate("app.map.centre") == [0, 0]
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "query"


def test_two_files_side_by_side(tmp_path, opened):
    one, two = vectors(tmp_path / "a.npy"), vectors(tmp_path / "b.npy", seed=1)
    tab = opened(page(tmp_path, one, two))
    ask(tab, "w5")
    assert tab.locator(".answer h2").all_text_contents() == [one, two]
    for number, path in enumerate((one, two)):
        words = tab.locator(".answer").nth(number).locator(".word").all_text_contents()
        expected = [near.word for near in Vectors.load(path).most_similar("w5", topn=20)]
        assert len({*words} & {*expected}) >= 17
    tab.locator("#which button").nth(1).click()
    assert tab.evaluate("app.map.table === app.tables[1]")


def test_the_start_shows_examples_and_back_returns_to_them(tmp_path, opened):
    tab = opened(page(tmp_path, vectors(tmp_path / "v.npy")))
    assert "300 words of 20 dimensions" in tab.locator(".note").text_content()
    examples = tab.locator(".examples button").all_text_contents()
    assert len(examples) == 6 and not tab.locator("#fit").is_visible()
    tab.locator(".examples button").first.click()
    assert tab.input_value("#query") == examples[0] and len(results(tab)) == 20
    second = results(tab)[0][0]
    tab.locator(".answer ol button").first.click()
    tab.go_back()
    tab.wait_for_function(f"app.text === {json.dumps(examples[0])}")
    assert tab.input_value("#query") == examples[0]
    tab.go_back()
    tab.wait_for_selector(".examples")
    tab.go_forward()
    tab.go_forward()
    tab.wait_for_function(f"app.text === {json.dumps(second)}")
    tab.locator("#start").click()
    assert tab.locator(".examples").count() == 1 and tab.input_value("#query") == ""
    tab.evaluate("location.hash = '%E0%A4%A'")  # no UTF-8
    tab.wait_for_selector(".note >> text=no vector")


def test_a_phone_shows_all_without_scrolling_sideways(tmp_path, opened):
    size = {"width": 360, "height": 740}
    path = page(tmp_path, vectors(tmp_path / "v.npy"), vectors(tmp_path / "w.npy", seed=1))
    tab = opened(path, viewport=size, has_touch=True, is_mobile=True)
    ask(tab, "w5")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("#query", "#map", "#answers"):
        box = tab.locator(name).bounding_box()
        assert box["width"] > 250 and box["y"] + min(box["height"], 40) < 740, name
