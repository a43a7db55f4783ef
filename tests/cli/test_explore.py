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
from helpers import save
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v import Vectors, compare
from dcme_w2v.cli.main import run
from dcme_w2v.pages.explore import _titles, read_items
from dcme_w2v.plots import projection
from dcme_w2v.plots.projection import ITERATIONS, plane

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def files(here):
    """Words of five topics and words with markup, of two seeds."""
    for name, seed in (("a", 0), ("b", 1)):
        random = np.random.default_rng(seed)
        centers = random.normal(size=(5, 20)) * 2
        words = HOSTILE + [f"w{i}" for i in range(300 - len(HOSTILE))]
        matrix = centers[np.arange(300) % 5] + random.normal(size=(300, 20))
        save(here / f"{name}.safetensors", words, matrix, counts=np.arange(399, 99, -1))


def page_of(line):
    """Make an HTML page; return its path."""
    assert run(["explore", *line.split(), "--output", "page.html", *PCA]) == 0
    return Path("page.html")


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
HOSTILE = ["<script>document.title='bad'</script>", "<img/src=x/onerror=document.title='bad'>",
           "</script><b>bold</b>", "%SCRIPT%", "-minus", "&amp;", "köln", "a'\"`b"]  # fmt: skip
BLOCKED = "https://example.org"  # a test requests it
PCA = ["--method", "pca", "--quiet"]


def block(text, name):
    """Return the data of one block of a page."""
    packed = re.search(rf'<script type="application/octet-stream" id="{name}">([^<]*)<', text)[1]
    return gzip.decompress(base64.b64decode(packed))


# ---- the file ----


def test_a_page_contains_its_data_and_forbids_the_network():
    text = page_of("a.safetensors").read_text(encoding="utf-8")
    assert page_of("a.safetensors").read_text(encoding="utf-8") == text
    loaded = Vectors.load("a.safetensors")
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


def test_a_layout_by_tsne_keeps_topics_together(monkeypatch):
    pytest.importorskip("openTSNE")
    monkeypatch.setattr(projection, "default_threads", lambda: 1)  # others would wait, mostly
    items = read_items("a.safetensors", None, 1, 100, 1)
    seen = []
    points = plane(items.matrix, "tsne", 1, seen.append)
    assert seen[-1] == ITERATIONS and points.shape == (100, 2)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(100) * 1e9
    topic = np.arange(100) % 5
    assert (topic[apart.argmin(axis=1)] == topic).mean() > 0.9


def test_rows_of_documents_with_labels_and_titles():
    random = np.random.default_rng(0)
    save_npz("r.npz", csr_matrix(random.random((30, 150)).astype(np.float32)))
    lines = [f"{'xyz'[i % 3]}\ttext <b>{i % 28}</b> {'long ' * 30}\n" for i in range(30)]
    Path("labels").write_text("".join(lines))
    text = page_of("r.npz --labels labels").read_text()
    [about] = json.loads(block(text, "about"))
    assert (about["rows"], about["dim"]) == (30, 30)
    assert about["about"] == "30 documents of 30 dimensions"
    assert [label[0] for label in about["labels"]] == [["x"], ["y"], ["z"]]
    names = json.loads(block(text, "names0"))
    assert len(set(names)) == 30 and names[4].startswith("text <b>4</b> long")
    assert len(names[4]) <= 80 and names[4].endswith(" ...") and names[29].endswith(" (30)")
    assert set(about["examples"]) <= set(names)
    text = page_of("r.npz --labels labels --color 2").read_text()
    assert len(json.loads(block(text, "about"))[0]["labels"]) == 28
    Path("r.svm").write_text("x 0:1 2:1\ny 1:1\nx 0:2\ny 2:1\n")
    assert json.loads(block(page_of("r.svm --limit 3").read_text(), "names0")) == ["1", "2", "3"]


@pytest.mark.parametrize(
    "titles",
    [["a (3)", "a", "a"], ["a", "a", "a (2)"], ["", "1", "1 (2)", ""], ["a (2)", "a", "a"]],
)
def test_every_title_is_kept(titles):
    found = _titles(titles)
    assert len(found) == len({*found}) == len(titles)
    assert all(name.startswith(title) for name, title in zip(found, titles, strict=True))


def test_two_files_of_the_same_words_share_a_map_and_colors():
    loaded = Vectors.load("a.safetensors")
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(20, 20)))[0]
    words = [*loaded.words[:299], "new"]
    save(Path("c.safetensors"), words, (loaded.vectors @ turn).astype(np.float32))
    text = page_of("a.safetensors c.safetensors").read_text()
    maps = [np.frombuffer(block(text, f"points{n}"), dtype="<i2") for n in range(2)]
    assert np.abs(maps[0].astype(int) - maps[1]).max() <= 2
    assert block(text, "groups0") == block(text, "groups1")
    one, other = (one["labels"] for one in json.loads(block(text, "about")))
    assert [label[2:] for label in one] == [label[2:] for label in other]
    assert json.loads(block(text, "about"))[0]["changes"] == []
    text = page_of("a.safetensors c.safetensors --limit 15").read_text()
    assert len(json.loads(block(text, "about"))) == 2


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

    def open_page(line, **options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page_of(line).absolute().as_uri())
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


def test_answers_equal_those_of_the_command_line(opened, cli):
    tab = opened("a.safetensors")
    for text, command in {
        "w7": "neighbors a.safetensors w7",
        "+w1 -w2 +w3": "neighbors a.safetensors -- +w1 -w2 +w3",
        "w1 w2 w3": "neighbors a.safetensors -- +w2 -w1 +w3",
    }.items():
        found = ask(tab, text)
        cosines = dict(found)
        rows = cli.rows(command.replace("a.safetensors", "a.safetensors -k 5"))
        assert len(rows) == 5
        for row in rows:
            assert cosines[row[-2]] == pytest.approx(float(row[-1]), abs=0.01)
        assert len(found) == 20
        assert [cosine for _, cosine in found] == sorted(cosines.values(), reverse=True)
    loaded = Vectors.load("a.safetensors")
    odd = loaded.doesnt_match(["w1", "w2", "w3"])
    notes = tab.locator(".note").all_text_contents()
    assert notes == ["w1 is to w2 as w3 is to", f"odd one out: {odd}"]
    ask(tab, "w1 w2")
    cosine = float(tab.locator(".note").text_content().removeprefix("cosine "))
    assert cosine == pytest.approx(loaded.similarity("w1", "w2"), abs=0.01)
    assert ask(tab, "nowhere") == []
    assert tab.locator(".note").text_content() == "no vector for nowhere"


def test_words_are_text_and_never_html(opened):
    Path("a.safetensors").rename("<b>x.safetensors")
    tab = opened("<b>x.safetensors b.safetensors")
    for word in HOSTILE:
        assert len(ask(tab, word)) == 40, word
    tab.fill("#query", "<")
    assert tab.locator("#completions li").first.text_content() == HOSTILE[0]
    tab.evaluate("app.map.zoom(3)")
    assert tab.title() == "Explore vectors"
    assert tab.locator("b, img").count() == tab.locator("#help b").count()
    assert tab.evaluate(f"fetch('{BLOCKED}').then(() => 'sent', () => 'blocked')") == "blocked"


def test_clicks_keys_and_completion(opened):
    tab = opened("a.safetensors")
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
    assert tab.evaluate("app.map.scale") > scale and tab.evaluate("app.map.center[0]") != 0
    tab.keyboard.press("0")
    assert tab.evaluate("app.map.center") == [0, 0]
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "query"


def test_two_files_side_by_side(opened):
    tab = opened("a.safetensors b.safetensors")
    found = compare("a.safetensors", "b.safetensors", topn=100)
    for order, factor in (("largest change", -1), ("unusual first", 0)):
        tab.get_by_text(order).click()
        words = tab.locator(".changes .word").all_text_contents()
        by_change = sorted(found, key=lambda one: factor * round(one.change, 3))
        assert words == [one.word for one in by_change]
    lists = [" ".join(near.word for near in one[:3]) for one in found[0][3:]]
    assert tab.locator(".near").first.text_content() == " → ".join(lists)
    ask(tab, "w5")
    assert tab.locator(".answer h2").all_text_contents() == ["a.safetensors", "b.safetensors"]
    for number, path in enumerate(("a.safetensors", "b.safetensors")):
        words = tab.locator(".answer").nth(number).locator(".word").all_text_contents()
        expected = [near.word for near in Vectors.load(path).most_similar("w5", topn=20)]
        assert len({*words} & {*expected}) >= 17
    tab.locator("#which button").nth(1).click()
    assert tab.evaluate("app.map.table === app.tables[1]")


def test_the_start_shows_examples_and_back_returns_to_them(opened):
    tab = opened("a.safetensors")
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


def test_a_phone_shows_all_without_scrolling_sideways(opened):
    size = {"width": 360, "height": 740}
    tab = opened("a.safetensors b.safetensors", viewport=size, has_touch=True, is_mobile=True)
    ask(tab, "w5")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("#query", "#map", "#answers"):
        box = tab.locator(name).bounding_box()
        assert box["width"] > 250 and box["y"] + min(box["height"], 40) < 740, name
