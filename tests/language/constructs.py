"""One snippet per construct.  ``T`` stands for a decision, ``BODY`` for other statements, ``_`` ends names of its own.

The snippets work on ``h`` (a Variable), ``c`` (an int), ``x`` and ``y`` (Variables), ``n`` (an int), ``log`` (a list)
and ``box`` (an object).
"""
import sys

#: What a decision may be made of.
DECISIONS = {
    "python": ["n > 1", "c < 1", "n != 2"],
    "array": ["float(h.array.sum()) > 0.1", "x.array[0] < h.array[1]", "h.array.max() > 0.4"],
}

#: Constructs that hold statements.
BLOCKS = {
    "if": """
if T:
    BODY
""",
    "if_else": """
if T:
    h = h * 0.5
else:
    BODY
""",
    "elif": """
if T:
    c += 1
elif T:
    BODY
else:
    h = h + y
""",
    "while": """
k_ = 0
while k_ < 2 and T:
    k_ += 1
    h = h * 0.75 - 0.05
    BODY
""",
    "while_else": """
k_ = 0
while T:
    k_ += 1
    if k_ > 2:
        break
    h = h * 0.5
else:
    BODY
""",
    "while_true": """
k_ = 0
while True:
    k_ += 1
    BODY
    if k_ > 1 or T:
        break
""",
    "for_range": """
for i_ in range(2):
    BODY
    c += i_
""",
    "for_list": """
for v_ in [x, y]:
    h = h + v_
    BODY
""",
    "for_tuple": """
for v_, w_ in ((x, 1), (y, 2)):
    h = h + v_ * w_
    BODY
""",
    "for_items": """
for key_, v_ in {"a": x, "b": y}.items():
    log.append(key_)
    h = h * v_
    BODY
""",
    "for_enumerate": """
for i_, v_ in enumerate([x, y], 1):
    h = h + v_ * i_
    BODY
""",
    "for_zip": """
for v_, w_ in zip([x, y], [y, h]):
    h = h + v_ * w_
    BODY
""",
    "for_reversed": """
for v_ in reversed([x, y]):
    h = h * 2 + v_
    BODY
""",
    "for_generator": """
for v_ in (v * 2 for v in (x, y)):
    h = h + v_
    BODY
""",
    "for_iterator": """
it_ = iter([x, y, x])
next(it_)
for v_ in it_:
    h = h + v_
    BODY
""",
    "for_array": """
for a_ in h.array[:2]:
    h = h + a_
    BODY
""",
    "for_variable": """
for v_ in x[:2]:
    h = h * v_
    BODY
""",
    "for_else": """
for i_ in range(2):
    if T:
        break
    h = h + y
else:
    BODY
""",
    "break": """
for i_ in range(3):
    BODY
    if T:
        break
    h = h - y
""",
    "continue": """
for i_ in range(3):
    if T:
        continue
    BODY
    h = h - y
""",
    "return": """
if T:
    BODY
    return h, c
""",
    "try": """
try:
    c += 1
    BODY
except ValueError as error_:
    log.append(str(error_))
""",
    "except": """
try:
    if n > 0:
        raise KeyError("k")
    h = h * 2
except KeyError:
    BODY
""",
    "try_else": """
try:
    c += 1
except ValueError:
    c += 10
else:
    BODY
""",
    "finally": """
try:
    h = h * 2
finally:
    BODY
""",
    "try_finally": """
try:
    BODY
finally:
    box.n += 1
""",
    "with": """
with Within(box):
    BODY
""",
    "with_as": """
with contextmanager(box) as b_:
    b_.n += 1
    BODY
""",
    "using_config": """
with chainer.using_config("train", False):
    h = F.dropout(h)
    BODY
""",
    "no_backprop": """
with chainer.no_backprop_mode():
    h = h * 2
    BODY
""",
    "function": """
def g_(v):
    nonlocal h, c
    BODY
    h = h + v
g_(x)
""",
}

#: Constructs that do not.
SIMPLE = {
    "assign": "h = h * 1.5 + x",
    "if_expression": "h = h * 2 if T else y - h",
    "and": "b_ = T and c < 3\nc += bool(b_)",
    "or": "b_ = T or c > 3\nc += bool(b_)",
    "not": "b_ = not T\nif b_:\n    h = h + y",
    "boolean": "if (T or c > 3) and not (T and n > 2):\n    h = h - y",
    "chain": "if -0.5 < float(h.array.sum()) < 0.5 <= c + 1:\n    h = h + y",
    "is_none": "v_ = None if T else y\nif v_ is not None:\n    h = h + v_",
    "in": "if n in (1, 2):\n    h = h * y\nif 'q' not in box.d:\n    c += 1",
    "isinstance": "if isinstance(h, chainer.Variable) and not isinstance(h.array, list):\n    c += 1",
    "walrus": "if (s_ := float(h.array.sum())) > 0.1:\n    h = h * s_\nlog.append(s_ > 0.1)",
    "walrus_while": "k_ = 0\nwhile (s_ := float(h.array.max())) > 0.3 and (k_ := k_ + 1) < 3:\n    h = h * 0.5\nlog.append(k_)",
    "walrus_expression": "h = (v_ := h * 2) + v_ if T else (v_ := y)\nh = h + v_",
    "assert": "assert h.array.shape == (3,) and (T or True), 'never'",
    "assert_fails": "assert T, f'at {c}'",
    "raise": "if T:\n    raise ValueError(f'at {c}')",
    "raise_class": "if T:\n    raise ValueError",
    "return_value": "if T:\n    return h, c",
    "list": "vs_ = [v * 2 for v in (x, h)]\nh = vs_[0] + vs_[1]",
    "list_if": "vs_ = [v * 2 for v in (x, y, h) if v is not y]\nh = sum(vs_)",
    "list_if_array": "vs_ = [v for v in (x, y) if T]\nh = sum(vs_, h)",
    "list_nested": "vs_ = [[a * b for a in (x, y) if n] for b in (h, 2)]\nfor r_ in vs_:\n    h = sum(r_, h)",
    "dict": "d_ = {k: v * 2 for k, v in (('a', x), ('b', h)) if k != 'z'}\nh = d_['a'] + d_['b']",
    "set": "s_ = {k % 2 for k in range(n)}\nc += len(s_)",
    "generator": "h = sum((v * 2 for v in (x, y) if n > 0), h)",
    "list_decides": "vs_ = [v * 2 if T else v for v in (x, y)]\nh = vs_[0] - vs_[1]",
    "any_all": "if any(float(v.array.sum()) > 1 for v in (x, y)) or all(float(v.array.sum()) > -1 for v in (x, y)):\n    h = h + 1",
    "lambda": "g_ = lambda v, w=c: v * 2 if T else v + w\nh = g_(h)",
    "call": "h = scale(h, *[2], **{'plus': x})",
    "helper": "h = decide(h)",
    "star": "a_, *b_ = [h, x, y]\nh = a_ * b_[-1] + b_[0]",
    "unpack": "(a_, b_), d_ = (x, h), 3\na_, b_ = b_, a_\nh = a_ - b_ * d_",
    "display": "vs_ = [x, *(y, h), *[]]\nd_ = {**box.d, 'z': h}\nh = vs_[-1] + d_['z']",
    "del": "v_ = h * 2\nh = v_ + x\ndel v_",
    "del_item": "d_ = {'a': x, 'b': h}\ndel d_['a']\nc += len(d_)",
    "augmented": "h = h + 0\nh += x\nc -= 2\nc *= 2",
    "attribute": "box.h = h\nbox.n += 1\nh = box.h * 2",
    "item": "box.items[0] = h\nbox.d['a'] = box.items[1]\nbox.d['k'] += 1",
    "append": "box.items.append(h)\nbox.items.pop(0)",
    "slice": "h = F.concat([h[1:], h[:1]], axis=0)\nc += len(box.items[::2])",
    "global": "global counter\ncounter = c + 1\nc = counter",
    "f_string": "print(f'{c:03d} {float(h.array.sum()):.4f} {n!r:>4} {box.n=}')",
    "print": "print(c, 'of', n, sep='-')",
    "delayed": "fs_ = [lambda v, k=k: v * k for k in (1, 2)]\nfor f_ in fs_:\n    h = f_(h)",
    "array_write": "a_ = h.array.copy()\na_[0] = 0.5\na_ += 1\nh = h * a_",
    "numbers": "s_ = abs(float(h.array.sum()))\nr_ = max(s_, 0.5) + min(1, n) + round(2.7)\nh = h * r_",
    "pass": "pass",
}

if sys.version_info >= (3, 10):
    BLOCKS["match"] = """
match n, T:
    case 0, _:
        h = h + 1
    case _, True if T:
        BODY
    case (1 | 2) as m_, _:
        c += m_
    case _:
        h = h * 3
"""
    SIMPLE["match_value"] = """
match {"kind": "scale", "by": [n, c]}:
    case {"kind": "shift"}:
        h = h + 1
    case {"kind": "scale", "by": [a_, *_]} if a_ > 0:
        h = h * a_
    case _:
        c += 1
"""

#: Blocks whose decisions are all Python's, whatever is chosen.
UNDECIDED = {name for name, text in BLOCKS.items() if not any(line for line in text.split() if line.strip("(:),") == "T")}
