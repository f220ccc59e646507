"""How graphs, programs, explanations and profiles show themselves: printed, and in notebooks."""
import re
import xml.etree.ElementTree as ElementTree

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.errors import FallbackWarning


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.w = np.ones((3, 4), "f")

    @to_static
    def forward(self, x):
        self.h = F.relu(x) * 2.5
        h = self.h
        while F.sum(h).array < 10:
            h = h + np.array([1, 2, 3, 4], "f")
        if F.max(h).array > 3:
            h = h[:, 1:3]
        else:
            h = h[:, :2]
        return F.softmax(h)


@pytest.fixture
def x():
    return chainer.Variable(np.ones((2, 4), "f"))


LISTING = """\
Model.forward(x1: float32[2, 4]):
  relu: float32[2, 4] = relu(x1)  # F
  constant: float32[] = constant(value=2.5)  # F
  broadcast_to: float32[2, 4] = broadcast_to(constant, shape=(2, 4))  # F
  mul: float32[2, 4] = mul(broadcast_to, relu)  # F
  loop: float32[2, 4], count: py_int = while_(mul, carried=1, counted=True)  # F
    test(carried_1: float32[2, 4]):
      sum_2: float32[] = sum(carried_1, axis=(0, 1))  # F
      lt_2: numpy.bool = numpy_call(sum_2, call=lt({0}, 10), types=(numpy.bool,))  # F
      return lt_2
    body(carried_2: float32[2, 4]):
      array_1: float32[4] = numpy_call(call=array([1, 2, 3, 4], 'f'), types=(float32[4],))  # F
"""


def test_a_graph_is_printed_with_types_attributes_constants_bodies_and_lines(x):
    model = Model()
    model.forward(x)
    text = str(model.forward.graph)
    plain = re.sub(r" +# test_shown.py:\d+$", "  # F", text, flags=re.M)
    assert "\n".join(plain.split("\n")[:12]) + "\n" == LISTING
    names = [name for line in text.split("\n") if " = " in line
             for name in re.findall(r"(\w+): ", line.partition(" = ")[0])]
    assert len(set(names)) == len(names), "a name is given once"
    assert re.search(r"getitem\(\w+, index=\(\(0, 2, 1\), \(1, 3, 1\)\)\)", text)


def test_a_graph_as_a_picture(x, tmp_path):
    model = Model()
    model.forward(x)
    graph = model.forward.graph
    picture = graph.plot()
    root = ElementTree.fromstring(picture)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for node in graph.walk():
        assert node.op.name in texts
    assert {"test", "body", "then", "orelse"} <= set(texts), "the bodies of loops and branches"
    boxes = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(float(box.get("width")) <= width and float(box.get("height")) <= height for box in boxes[1:])
    picture.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == picture == picture._repr_svg_()


def test_what_notebooks_show(x):
    model = Model()
    explained = model.forward.explain(x)
    profile = model.forward.profile()
    with profile:
        model.forward(x)
    static = type(model).forward
    for shown, wanted in ((static, "Model.forward: compiled"), (explained, "graph: ReLU"), (profile, "1 call of"),
                          (static.program(model, x), "while_"), (static.graph, "while_"), (static.explain_misses(), "no program yet")):
        html = shown._repr_html_()
        ElementTree.fromstring(html.replace("<br>", "<br/>").replace("<details open>", "<details open='1'>"))  # well-formed
        assert wanted in html and "<script" not in html and "http" not in html, type(shown)
    text = to_static(lambda x: F.relu(x) * (x.array.sum() < 3 and 1))
    assert "x.array.sum() &lt; 3 and 1" in text.explain(x)._repr_html_(), "the user's text is escaped"


def test_explain_names_what_splits_the_gradients(x):
    @to_static
    def stores(model, x):
        model.h = F.relu(x)
        model.last = {"loss": F.sum(model.h * 2)}
        return model.last["loss"]

    report = stores.explain(Model(), x)
    assert report.segments == 2 and report.split_by == ("argument 0.h",)
    assert "gradients are computed by 2 FunctionNodes, not one, since later code can reach\n    argument 0.h" in report
    assert to_static(lambda x: F.relu(x)).explain(x).segments == 1


def test_explain_of_a_function_in_parts(x):
    def block(x):
        for _ in range(10):
            x = F.relu(x * 2 + 1)
        return x

    @to_static
    def in_parts(x):
        h = block(x)
        h.array.ctypes.shape[0]
        h = block(h)
        import os  # noqa: F401, I001
        h.array.ctypes.shape[0]
        return block(h)

    assert "the first call of this kind decides" in in_parts.explain(x)
    with pytest.warns(FallbackWarning):
        in_parts(x)
    report = in_parts.explain(x)
    first = in_parts.__wrapped__.__code__.co_firstlineno
    marks = [[mark.kind for mark in report.marks(first + 2 + k)] for k in range(6)]
    assert marks == [["Python"], ["cut"], ["part"], ["Python"], ["cut"], ["part"]]
    assert "decides" not in report and "eagerly" not in report
    assert str(in_parts.explain_misses()).startswith("there was no program yet: the call runs in parts: `.ctypes`")
