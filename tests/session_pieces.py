"""What session programs are made of: tables of pieces (numbers and modules here), each with its definitions, its use and what may change.

A piece is written as ``=== name tags``, definitions, ``---``, the body of a function of ``h`` (a Variable), ``n`` (a
number), ``t`` (a text), ``a`` (an array) that may set ``h`` and ``r``, ``---``, and changes, one per line (indented
lines go on).  ``_k`` at the end of a name becomes a number of its own, ``M`` the module of the piece, ``<<x|y>>`` one of
several texts, ``<<num>>`` and its like something of a pool (see `session_programs`).  A change that begins with ``!`` is
of the one process, not of one of the worlds.  Tags group the pieces for counting.
"""

TEXT = r'''
=== num_arg numbers
---
<<use:n>>
---
=== num_ops numbers
---
r = (<<use_value:n>>, <<use_value:n>>)
---
=== num_attr numbers
class Box_k:
    def __init__(self):
        self.v = <<num>>
box_k = Box_k()
---
<<use:box_k.v>>
---
M.box_k.v = <<num>>
M.box_k.v = <<num>>
M.box_k = M.Box_k()
del M.box_k.v
M.Box_k.v = <<num>>
=== num_grows numbers
class Count_k:
    def __init__(self):
        self.v = <<small>>
count_k = Count_k()
---
count_k.v <<+= 1|*= 3|= count_k.v * 10 + 7|= count_k.v * 200 - 1|*= 5 / 7|-= n|+= n|*= n|= n|= -count_k.v|= count_k.v ** 2>>
<<use:count_k.v>>
---
M.count_k.v = <<num>>
M.count_k.v = <<num>>
M.count_k = M.Count_k()
=== num_global numbers
NUM_k = <<num>>
---
<<use:NUM_k>>
---
M.NUM_k = <<num>>
M.NUM_k = <<num>>
M.NUM_k = <<num>>
del M.NUM_k
=== num_global_grows numbers
SUM_k = <<small>>
---
global SUM_k
SUM_k = SUM_k <<+ 1|* 10 + 7|* 0.5|+ n|- n|* -1>>
<<use:SUM_k>>
---
M.SUM_k = <<num>>
M.SUM_k = <<num>>
=== num_items numbers
DICT_k = {"v": <<num>>, "w": 1}
LIST_k = [<<num>>, 2]
---
<<use:<<DICT_k["v"]|LIST_k[0]|LIST_k[-1]|DICT_k.get("v", 0)|sum(LIST_k)|sum(DICT_k.values())|max(LIST_k)>>>>
---
M.DICT_k["v"] = <<num>>
M.LIST_k[0] = <<num>>
M.LIST_k[-1] = <<num>>
M.DICT_k["v"] = <<num>>
M.LIST_k.append(<<num>>)
M.LIST_k.insert(0, <<num>>)
del M.DICT_k["v"]
M.DICT_k["w"] = <<num>>
M.DICT_k["z"] = <<num>>
M.LIST_k = (<<num>>, <<num>>)
M.LIST_k.pop()
M.DICT_k = dict(reversed(list(M.DICT_k.items())))
=== num_items_grow numbers
GROW_k = {"v": <<small>>}
---
GROW_k["v"] = GROW_k["v"] <<+ 1|* 10 + 7|* 5 / 7|+ n|* n>>
<<use:GROW_k["v"]>>
---
M.GROW_k["v"] = <<num>>
M.GROW_k = {"v": <<num>>}
=== num_closure numbers
def make_k(v):
    def get(h, a):
        r = None
        <<use:v>>
        return h, r
    def put(new):
        nonlocal v
        v = new
    def grow(h):
        nonlocal v
        v = v * 10 + 7
        return h * v
    return get, put, grow
get_k, put_k, grow_k = make_k(<<num>>)
---
<<h, r = get_k(h, a)|h = grow_k(h)>>
---
M.put_k(<<num>>)
M.put_k(<<num>>)
M.get_k, M.put_k, M.grow_k = M.make_k(<<num>>)
=== num_default numbers
def with_default_k(h, a, v=<<num>>, *, w=<<num>>):
    r = None
    <<use:<<v|w>>>>
    return h, r
---
h, r = with_default_k(h, a)
---
M.with_default_k.__defaults__ = (<<num>>,)
M.with_default_k.__kwdefaults__ = {"w": <<num>>}
M.with_default_k.__defaults__ = None
M.with_default_k.__code__ = (lambda h, a, v=0, *, w=0: (h * 2, w)).__code__
=== num_class_attr numbers classes
class Const_k:
    v = <<num>>
class Derived_k(Const_k):
    pass
derived_k = Derived_k()
---
<<use:<<Const_k.v|Derived_k.v|derived_k.v|derived_k.__class__.v|type(derived_k).v|getattr(derived_k, "v", 5)>>>>
---
M.Const_k.v = <<num>>
M.Const_k.v = <<num>>
M.Derived_k.v = <<num>>
M.derived_k.v = <<num>>
del M.Derived_k.v
del M.Const_k.v
M.Derived_k.__bases__ = (type("Const_k", (), {"v": <<num>>}),)
=== num_decides numbers
LIMIT_k = <<num>>
---
if n > LIMIT_k:
    h = h * 2
elif n == LIMIT_k:
    r = "equal"
elif not n:
    r = f"{n!r} is nothing"
---
M.LIMIT_k = <<num>>
M.LIMIT_k = <<num>>
=== num_while numbers
STEP_k = <<0.7|0.5|2|1.5>>
---
k = n
rounds = 0
while float(h.array.sum()) + rounds < <<2|3|1>> and rounds < 4:
    k <<*= 5 / 7|*= STEP_k|+= STEP_k|= k * 10 + 7|-= n>>
    rounds += 1
r = (k, rounds, a * k)
---
M.STEP_k = <<num>>
=== num_staged numbers
---
k = n if h.array.sum() > <<0|1>> else <<num>>
r = (k, <<use_value:k>>)
---
=== num_scalars numbers
SCALAR_k = np.<<float32|float64|int8|int64|float16|bool_>>(1)
---
r = <<SCALAR_k * n|n - SCALAR_k|h.array.sum() * n|h.array[0, 0] + n|a.sum() * n|a[0] + n|SCALAR_k ** n|a * SCALAR_k>>
---
M.SCALAR_k = np.<<float32|float64|int8|int64|float16>>(<<1|100|1.5>>)
M.SCALAR_k = <<num>>
=== num_param numbers
W_k = chainer.Parameter(np.array([0.5, -1.0, 2.0], "f"))
---
h = h <<* W_k|+ W_k * n|* (W_k + n)|- W_k / (abs(n) + 1)>>
---
M.W_k.array[...] = <<0.5|-2|7>>
M.W_k.array = np.array([1.0, <<small>>, 3.0], "<<f|f|d>>")
M.W_k = chainer.Parameter(np.array([0.1, 0.2, <<small>>], "f"))
M.W_k.requires_grad = False
M.W_k.cleargrad()
M.W_k.name = "<<u|w>>"
M.W_k = chainer.Variable(np.array([0.1, 0.2, <<small>>], "<<f|d>>"))
=== import_module imports
KONST_k = <<num>>
def fn_k(x):
    return x * 2
class Imp_k:
    scale = 1.5
    def act(self, x):
        return x * self.scale
---
import <<SELF as q_k|SELF as q_k>>
h = q_k.fn_k(h) * q_k.Imp_k.scale
r = (q_k.KONST_k, q_k.Imp_k().act(h))
---
M.KONST_k = <<num>>
M.fn_k = lambda x: x * 3
M.fn_k = lambda x: F.tanh(x)
M.Imp_k.scale = <<small>>
M.Imp_k.act = lambda self, x: x - self.scale
M.Imp_k = type("Imp_k", (), {"scale": 4.0, "act": lambda self, x: x})
del M.KONST_k
=== import_from imports
KON_k = <<num>>
def fun_k(x):
    return x * 2
class Imf_k:
    scale = 1.5
---
from SELF import fun_k as g_k, <<KON_k as v_k|Imf_k as v_k>>
h = g_k(h)
r = <<v_k|getattr(v_k, "scale", v_k)|a * getattr(v_k, "scale", 3)>>
---
M.KON_k = <<num>>
M.fun_k = lambda x: x * 3
M.Imf_k.scale = <<small>>
M.Imf_k = type("Imf_k", (), {"scale": 4.0})
del M.fun_k
=== import_library imports patches
---
import math as m_k
from chainer import functions as f_k
import numpy
h = f_k.tanh(h) * <<m_k.sqrt(abs(n) % 10)|numpy.sum(a)|m_k.pi>>
---
!patch("chainer.functions.tanh", fakes.fake_tanh)
!patch("math.sqrt", fakes.fake_sqrt)
!patch("numpy.sum", fakes.fake_sum)
!patch("math.pi", 3)
!unpatch()
=== import_made imports
---
try:
    import made_k
    r = made_k.V
except ImportError as error:
    r = str(error)
---
!make_module("made_k", V=<<num>>)
!drop_module("made_k")
=== module_names imports
def mod_k(x):
    return x * 2
ATTR_k = <<num>>
---
h = sys.modules[__name__].mod_k(h)
r = getattr(sys.modules[__name__], "ATTR_k", "none")
---
M.mod_k = lambda x: x * 3
M.ATTR_k = <<num>>
del M.ATTR_k
=== module_getattr imports
---
r = OTHER.__dict__.get("late_k", OTHER.made_up_k if hasattr(OTHER, "made_up_k") else None)
---
OTHER.late_k = <<num>>
OTHER.made_up_k = <<num>>
OTHER.__getattr__ = lambda name: name + "!"
OTHER.__getattr__ = lambda name: name + "?"
del OTHER.late_k
=== module_global_builtin patches imports
---
r = (len([1, 2, n]), abs(-2.5), max(1, 2), isinstance(n, int), sorted([2, 1]), sum([1, n]), str(n))
print("n is", n)
---
M.len = lambda x: 7
M.abs = lambda x: "abs"
M.max = min
M.isinstance = lambda x, c: 3
M.sorted = list
M.sum = lambda x: 0
M.str = repr
M.print = lambda *args: None
del M.len
del M.print
M.range = lambda n: [0, 1]
'''

#: Special methods: name, parameters, what the class's own gives, what another one gives, a use of the object ``o``.
SPECIALS = """
__len__ | self | 2 | 3 | r = len(o)
__len__ | self | 0 | 3 | r = bool(o)
__getitem__ | self, i | i * 2 | i + 7 | r = o[3]
__getitem__ | self, i | [1, 2][i] | [4, 5, 6][i] | r = list(o)
__bool__ | self | True | False | h = h * 2 if o else h
__eq__ | self, other | True | False | r = o == n
__ne__ | self, other | True | False | r = o != n
__lt__ | self, other | True | False | r = o < n
__ge__ | self, other | True | False | r = o >= n
__gt__ | self, other | True | False | r = sorted([o, o]) is None
__hash__ | self | 3 | 4 | r = hash(o)
__hash__ | self | 3 | 3 | r = {o: 1}[o]
__iter__ | self | iter([1, 2]) | iter([3]) | r = [x for x in o]
__iter__ | self | iter([1, 2]) | iter([3, 4]) | p, q = o; r = p + q
__iter__ | self | iter([1, 2]) | iter([3]) | r = sum(o)
__next__ | self | 1 | 2 | r = next(o)
__call__ | self, x | x * 2 | x + 3 | h = o(h)
__getattr__ | self, name | len(name) | name | r = o.abc
__setattr__ | self, name, v | object.__setattr__(self, name, v) | None | o.w = n
__delattr__ | self, name | None | object.__setattr__(self, "gone", name) | del o.w
__enter__ | self | 1 | 2 | r = (o.__enter__(), n)
__contains__ | self, x | True | False | r = 3 in o
__add__ | self, x | x * 2 | x * 3 | h = o + h
__add__ | self, x | 1 | 2 | r = o + 1
__radd__ | self, x | 1 | 2 | r = 1 + o
__radd__ | self, x | 1 | 2 | r = sum([o])
__iadd__ | self, x | 5 | 6 | r = o; r += 1
__sub__ | self, x | 1 | 2 | r = o - n
__mul__ | self, x | x * 2 | x * 4 | h = o * h
__rmul__ | self, x | 3 | 4 | r = n * o
__matmul__ | self, x | 3 | 4 | r = o @ n
__truediv__ | self, x | 3 | 4 | r = o / n
__floordiv__ | self, x | 3 | 4 | r = o // n
__mod__ | self, x | 3 | 4 | r = o % n
__divmod__ | self, x | 3 | 4 | r = divmod(o, n)
__pow__ | self, x | 3 | 4 | r = o ** 2
__neg__ | self | 3 | 4 | r = -o
__pos__ | self | 3 | 4 | r = +o
__abs__ | self | 3 | 4 | r = abs(o)
__invert__ | self | 3 | 4 | r = ~o
__int__ | self | 3 | 4 | r = int(o)
__float__ | self | 3.5 | 4.5 | r = float(o); h = h * float(o)
__complex__ | self | 3j | 4j | r = complex(o)
__index__ | self | 1 | 2 | r = [5, 6, 7][o]
__index__ | self | 1 | 2 | r = list(range(o))
__round__ | self, d=None | 3 | 4 | r = round(o)
__floor__ | self | 3 | 4 | r = math.floor(o)
__trunc__ | self | 3 | 4 | r = math.trunc(o)
__repr__ | self | "one" | "two" | r = repr(o)
__repr__ | self | "one" | "two" | r = f"{o!r}"
__str__ | self | "one" | "two" | r = f"{o}"
__str__ | self | "one" | "two" | print(o)
__format__ | self, spec | "one" | "two" | r = f"{o:>3}"
__bytes__ | self | b"one" | b"two" | r = bytes(o)
__reversed__ | self | iter([1]) | iter([2]) | r = list(reversed(o))
__length_hint__ | self | 3 | 4 | r = operator.length_hint(o)
__setitem__ | self, i, v | None | setattr(self, "item", v) | o[1] = n
__delitem__ | self, i | None | setattr(self, "item", i) | del o[1]
__copy__ | self | 3 | 4 | r = copy.copy(o)
__deepcopy__ | self, memo | 3 | 4 | r = copy.deepcopy(o)
__dir__ | self | ["a"] | ["b"] | r = dir(o)
__sizeof__ | self | 100 | 200 | r = o.__sizeof__()
__array__ | self, dtype=None, copy=None | np.zeros(2) | np.ones(2) | r = np.asarray(o)
__array_priority__ | self | 1 | 2 | r = a * 2
__and__ | self, x | 3 | 4 | r = o & n
__or__ | self, x | 3 | 4 | r = o | n
__xor__ | self, x | 3 | 4 | r = o ^ n
__lshift__ | self, x | 3 | 4 | r = o << n
__rsub__ | self, x | 3 | 4 | r = n - o
__rtruediv__ | self, x | 3 | 4 | r = n / o
__fspath__ | self | "a" | "b" | r = os.path.basename(o)
__reduce__ | self | (int, (3,)) | (int, (4,)) | r = copy.copy(o)
__getstate__ | self | {} | {"v": 1} | r = copy.copy(o)
__exit__ | self, *error | True | False | r = o.__exit__(None, None, None)
plain | self | 3 | 4 | r = o.plain()
"""
