"""The page about a call: what is in it, and how it behaves in a browser."""
import html.parser
import json
import re
import shutil
import subprocess

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.errors import FallbackWarning
from dy2static.native import compiler

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")
in_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 3)

    @to_static
    def forward(self, x):
        h = F.relu(self.l(x))
        while F.sum(h).array < 10:
            h = h + 1
        return F.softmax(h)


def blocks(x):
    for _ in range(10):
        x = F.relu(x * 2 + 1)
    return x


def with_cuts(x):
    h = blocks(x)
    h.array.ctypes.shape[0]
    return blocks(h)


X = np.ones((2, 4), "f")


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


class Tags(html.parser.HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    page = Net().forward.explore(X)
    tags = Tags(page).found
    assert not [tag for tag, attributes in tags if {"src", "href"} & attributes.keys()] and "@import" not in page
    assert dict(tags)["html"] == {"lang": "en"} and ("section", {"id": "source", "aria-label": "Source"}) in tags
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_lines_are_linked_from_the_source_to_what_became_of_them():
    static = Net.forward
    model = Net()
    profile = model.forward.profile()
    with profile:
        model.forward(X)
    data = data_of(static.explored((model, X), {}, profile))
    lines = data["sources"][0]["lines"]
    relu, loop = [next(line for line in lines if text in line["text"]) for text in ("F.relu", "while")]
    assert relu["state"] in ("graph", "native") and relu["marks"] == ["graph: LinearFunction", "graph: ReLU"] and relu["seconds"] > 0
    panes = {pane["title"]: [line for group in pane["groups"] for line in group["lines"]] for pane in data["panes"]}
    for title, text in (("Converted source", "_dy.call(F.relu)"), ("Graph", " = relu("), ("Generated Python", "def forward")):
        assert any(text in line for line, _ in panes[title]), title
        assert title == "Generated Python" or {key for line, key in panes[title] if text in line} == {relu["key"]}
    assert {key for line, key in panes["Graph"] if "while_(" in line} == {loop["key"]}
    assert relu["key"] in {key for _, key in panes["Generated Python"]}
    assert data["timed"]["calls"] == 1 and data["memory"]["points"] and data["guards"] and data["misses"] and not data["cuts"]
    assert {key for _, key, _ in data["memory"]["points"]} >= {relu["key"], loop["key"]}


def test_a_function_in_parts_and_one_that_runs_eagerly():
    f = to_static(with_cuts)
    with pytest.warns(FallbackWarning):
        f(X)
    data = data_of(f.explore(X))
    assert [cut["reason"] for cut in data["cuts"]] and "cut" in {line["state"] for line in data["sources"][0]["lines"]}
    graph = next(pane for pane in data["panes"] if pane["title"] == "Graph")
    line = with_cuts.__code__.co_firstlineno
    assert [group["title"] for group in graph["groups"]] == [f"with_cuts, line {line + 1}", f"with_cuts, line {line + 3}"]
    data = data_of(to_static(with_cuts, strict=True).explore(X))
    assert "eager" in {line["state"] for line in data["sources"][0]["lines"]} and data["memory"] is None


def fused(x):
    h = F.relu(x)
    h = F.tanh(h) * 2
    return F.softmax(h)


@needs_compiler
def test_lines_of_c_and_times_of_the_backward():
    static = to_static(fused, backend="c")

    def run():
        y = static(chainer.Variable(X))
        y.grad = np.ones_like(y.array)
        y.backward()
    run()
    with static.profile() as profile:
        run()
    data = data_of(static.explored((chainer.Variable(X),), {}, profile))
    c = next(pane for pane in data["panes"] if pane["title"] == "C")["groups"][0]["lines"]
    first = fused.__code__.co_firstlineno
    relu, tanh, softmax = [f"test_explorer.py:{first + k}" for k in (1, 2, 3)]
    for text in ("tanh_f32(", "exp_f32(", "part_0(", "    part_0("):
        keys = {key for line, key in c if text in line}
        assert keys == {f"{relu}|{tanh}|{softmax}"}, text
    assert not any(key for line, key in c if line.startswith(("#include", "PyObject")))
    lines = {line["key"]: line for line in data["sources"][0]["lines"]}
    assert all(lines[key]["seconds"] > 0 and lines[key]["backward"] > 0 for key in (relu, tanh, softmax))
    assert data["timed"]["backward"] >= sum(line["backward"] for line in lines.values()) > 0


@needs_compiler
def test_what_is_compiled_names_no_lines(monkeypatch):
    """So functions on other lines that do the same have one library."""
    texts = []
    monkeypatch.setattr(compiler, "start", lambda text, *flags, start=compiler.start: texts.append(text) or start(text, *flags))
    for function in (lambda x: F.tanh(x * 3) + 1,
                     lambda x: F.tanh(x * 3) + 1):
        to_static(function, backend="c")(X)
    assert len({text for text in texts if "tanh_f32" in text}) == 1


def test_texts_of_the_user_end_no_script():
    @to_static
    def f(x):
        return F.relu(x) if "</script><script>alert(1)" else x

    page = f.explore(X)
    assert page.count("</script>") == 2 and "</script><script>alert(1)" in data_of(page)["sources"][0]["lines"][2]["text"]


def after(page, script, tmp_path):
    """What a page has become in a browser after a script; its ``title`` holds what the script gives."""
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>document.title = JSON.stringify((() => {{{script}}})())</script></body>"),
                    encoding="utf-8")
    flags = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
             "--disable-component-update --disable-sync --dump-dom").split()
    found = subprocess.run([BROWSER, *flags, f"--user-data-dir={tmp_path}/profile", f"file://{path}"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=120, check=True, text=True, encoding="utf-8").stdout
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", found, re.S)[1]))


@pytest.mark.any_python
@in_browser
def test_in_a_browser(tmp_path):
    """Every pane opens, clicks and keys highlight, Escape lets go."""
    found = after(Net().forward.explore(X), """
        document.querySelectorAll("details").forEach(box => box.open = true);
        document.querySelectorAll("details").forEach(box => box.dispatchEvent(new Event("toggle")));
        document.querySelectorAll("details").forEach(box => box.dispatchEvent(new Event("toggle")));
        const hits = () => [...document.querySelectorAll(".hit")].map(element => element.textContent.trim());
        const key = (name, target) => target.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
        const source = document.querySelector("#source .lines");
        const line = [...source.children].find(item => item.textContent.includes("F.relu"));
        line.click();
        const clicked = hits(), said = document.getElementById("said").textContent;
        key("Escape", document.body);
        const left = hits().length;
        const softmax = [...source.children].findIndex(item => item.textContent.includes("F.softmax"));
        for (let k = 0; k <= softmax; ++k) key("ArrowDown", source);
        return {clicked, said, left, moved: hits(), panes: [...document.querySelectorAll("h2")].map(each => each.textContent),
                empty: [...document.querySelectorAll(".lines")].filter(box => !box.children.length).length,
                why: document.getElementById("why").textContent};""", tmp_path)
    assert {"Net.forward", "Converted source", "Graph", "Generated Python", "Memory", "Cache"} <= set(found["panes"])
    assert any("h = _dy.call(F.relu)" in text for text in found["clicked"]) and any(" = relu(" in text for text in found["clicked"])
    assert "graph: ReLU" in found["said"] and "in graph" in found["said"]
    assert found["left"] == found["empty"] == 0
    assert any(" = softmax(" in text for text in found["moved"]) and "graph: Softmax" in found["why"]


@pytest.mark.any_python
@in_browser
@needs_compiler
def test_c_in_a_browser(tmp_path):
    """A line of C highlights all lines that it comes from, and their lines of the source highlight it."""
    static = to_static(fused, backend="c")
    found = after(static.explore(X), """
        document.querySelectorAll("details").forEach(box => box.open = true);
        for (let k = 0; k < 3; ++k) document.querySelectorAll("details").forEach(box => box.dispatchEvent(new Event("toggle")));
        const source = document.querySelector("#source .lines");
        const hits = where => [...where.querySelectorAll(".hit")].map(element => element.textContent.trim());
        const c = [...document.querySelectorAll("#panes > details")].find(box => box.querySelector("h2").textContent == "C");
        [...c.querySelectorAll("li")].find(item => item.textContent.includes("tanh_f32")).click();
        const from = hits(source);
        document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
        [...source.children].find(item => item.textContent.includes("F.tanh")).click();
        const landmarks = ["header", "main", "footer"].map(name => document.querySelectorAll(name).length);
        const unnamed = [...document.querySelectorAll("[role=listbox]:not([aria-label])")].length;
        return {from, to: hits(c), landmarks, unnamed, said: document.getElementById("said").textContent};""", tmp_path)
    assert [any(text in line for line in found["from"]) for text in ("F.relu", "F.tanh", "F.softmax", "def fused")] == [True, True, True, False]
    assert any("tanh_f32" in line for line in found["to"]) and "in c" in found["said"]
    assert found["landmarks"] == [1, 1, 1] and not found["unnamed"]


@pytest.mark.any_python
@in_browser
def test_a_deep_network_is_drawn_and_highlighted(tmp_path):
    """A graph of a thousand operations."""
    def deep(x):
        for _ in range(300):
            x = F.relu(x * 2 + 1)
        return x

    found = after(to_static(deep).explore(X), """
        document.querySelector("#source li[data-key]:nth-child(3)").click();
        return {hits: document.querySelectorAll(".hit").length, lines: document.querySelectorAll("#panes li").length};""", tmp_path)
    assert found["lines"] > 900 and found["hits"] > 100
