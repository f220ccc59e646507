"""Every op that says what it is in terms of simpler ones gives the same as these, but for the last bits."""
import numpy as np
import pytest
from native_cases import graph_of

from dy2static import ops  # noqa: F401  (it fills OPS)
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS, sample
from dy2static.ir.verify import verify
from dy2static.passes.legalize.decompose import decompose, decomposes

WHOLE = sample((4, 3, 5), (3,), (3,), (3,), (3,), axis=(0, 2), low=0.1)

#: Samples for ops that have none of their own: positive numbers, for what is a variance.
MORE = {
    "batch_norm": sample((4, 3, 5), (3,), (3,), axis=(0, 2)),
    "batch_norm_grad": sample((4, 3, 5), (3,), (4, 3, 5), (3,), (3,), axis=(0, 2)),
    "fixed_batch_norm": WHOLE,
    "fixed_batch_norm_grad": sample((4, 3, 5), (3,), (3,), (3,), (4, 3, 5), (3,), (3,), axis=(0, 2)),
    "batch_renorm": WHOLE,
    "batch_renorm_grad": sample((4, 3, 5), (3,), (4, 3, 5), (3,), (3,), (4, 3, 5), (4, 3, 5), axis=(0, 2), low=0.1),
    "standardize": sample((5, 37)),
    "scale_shift_grad": sample((2, 3, 4), (3,), (2, 3, 4)),
    "soft_labels": sample((4, 3), (4, 3), low=0.1, eps=1e-3),
    "contrast": sample((4, 3), np.array([1, 0, 1, 0], np.int32), ()),
}
COMPOSITE = [op for op in OPS.values() if op.decompose is not None]


def case(op, one):
    rng = np.random.RandomState(0)
    operands = [np.asarray(rng.uniform(one.low, one.high, x), "d") if isinstance(x, tuple) else x for x in one.operands]
    return graph_of(op, operands, one.attrs), operands


@pytest.mark.parametrize("op", COMPOSITE, ids=lambda op: op.name)
def test_steps_give_the_same(op):
    taken = 0
    for one in (*op.samples, *([MORE[op.name]] if op.name in MORE else ())):
        graph, operands = case(op, one)
        simple = decompose(graph)
        verify(simple)
        assert decomposes(graph.nodes[0]) == (op not in [node.op for node in simple.nodes])
        taken += decomposes(graph.nodes[0])
        with np.errstate(all="ignore"):
            for found, wanted in zip(interpret(simple, *operands), interpret(graph, *operands)):
                np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    assert taken


def test_a_backend_may_keep_what_it_has():
    graph, _ = case(OPS["softmax"], sample((4, 3), axis=1))
    assert [node.op.name for node in decompose(graph, kept=("softmax",)).nodes] == ["softmax"]


def test_other_dtypes_stay_whole():
    graph = graph_of(OPS["mean"], [np.arange(6)], {})
    assert [node.op.name for node in decompose(graph).nodes] == ["mean"]
