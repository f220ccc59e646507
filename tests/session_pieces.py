"""What session programs are made of: one table of pieces, each with its definitions, its use and what may change.

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
=== super_call classes
class Base_k:
    k = 2.0
    def act(self, x):
        return x * self.k
class Kid_k(Base_k):
    def act(self, x):
        return <<super().act(x) + super().k|super(Kid_k, self).act(x)|Base_k.act(self, x)|x * super().k>>
kid_k = Kid_k()
---
h = kid_k.act(h)
---
M.Base_k.act = lambda self, x: x - <<small>>
M.Base_k.act = lambda self, x: F.tanh(x) * self.k
M.Base_k.k = <<small>>
M.Kid_k.k = <<small>>
del M.Kid_k.act
del M.Base_k.act
M.kid_k.k = <<small>>
M.Kid_k.__bases__ = (type("Base_k", (), {"k": 5.0, "act": lambda self, x: x * 5}),)
M.kid_k.act = lambda x: x
=== super_diamond classes
class Root_k:
    def go(self, x):
        return x
class Left_k(Root_k):
    def go(self, x):
        return super().go(x) * 2
class Right_k(Root_k):
    def go(self, x):
        return super().go(x) + 1
class Both_k(Left_k, Right_k):
    def go(self, x):
        return super().go(x)
both_k = Both_k()
---
h = both_k.go(h)
---
M.Right_k.go = lambda self, x: x * 3
M.Root_k.go = lambda self, x: x - 1
del M.Left_k.go
M.Both_k.__bases__ = (M.Right_k, M.Left_k)
M.both_k.__class__ = M.<<Left_k|Right_k|Both_k>>
=== property classes
class Prop_k:
    def __init__(self):
        self._v = <<num>>
    @property
    def v(self):
        return self._v
    @v.setter
    def v(self, new):
        self._v = new
prop_k = Prop_k()
---
<<r = prop_k.v|prop_k.v = n|h = h * prop_k.v>>
r = (r, a * prop_k._v)
---
M.Prop_k.v = property(lambda self: 11)
M.Prop_k.v = property(lambda self: self._v, lambda self, new: setattr(self, "_v", -1))
M.prop_k._v = <<num>>
M.Prop_k.v = <<num>>
del M.Prop_k.v
=== descriptor classes
class Field_k:
    def __init__(self, v):
        self.v = v
    def __get__(self, item, owner=None):
        return self if item is None else self.v * 2
    def __set__(self, item, new):
        item.__dict__["set"] = new
class Holder_k:
    field = Field_k(<<small>>)
holder_k = Holder_k()
---
r = holder_k.field
<<h = h * holder_k.field|holder_k.field = n|pass>>
---
M.Field_k.__get__ = lambda self, item, owner=None: self.v - 1
M.Field_k.__set__ = lambda self, item, new: None
M.Holder_k.__dict__["field"].v = <<num>>
M.Holder_k.field = M.Field_k(<<num>>)
del M.Field_k.__set__
M.holder_k.__dict__["field"] = 3
M.Field_k.__getattr__ = lambda self, name: 0
=== class_methods classes
class Ways_k:
    v = <<num>>
    @classmethod
    def of(cls, x):
        return x * cls.v
    @staticmethod
    def free(x):
        return x + 1
class Way_k(Ways_k):
    pass
way_k = Way_k()
---
r = <<Ways_k|Way_k|way_k>>.<<of|free>>(h)
---
M.Ways_k.of = classmethod(lambda cls, x: x - 1)
M.Ways_k.free = staticmethod(lambda x: x * 3)
M.Ways_k.v = <<num>>
M.Way_k.v = <<num>>
M.Way_k.of = lambda self, x=None: 7
=== special classes
class SpecialBase_k:
    <<special_base>>
class Special_k(SpecialBase_k):
    <<special>>
special_k = Special_k()
---
o = special_k
<<special_use>>
---
M.<<Special_k|SpecialBase_k>>.<<special_new>>
M.<<Special_k|SpecialBase_k>>.<<special_new>>
M.Special_k.<<special_new>>
del M.Special_k.<<special_name>>
del M.SpecialBase_k.<<special_name>>
M.Special_k.__bases__ = (type("SpecialBase_k", (), {}),)
M.special_k.v = <<num>>
=== special_two classes
class Double_k:
    <<special>>
double_k = Double_k()
def host_k(o):
    r = None
    <<special_use>>
    return r
---
r = host_k(double_k)
---
M.Double_k.<<special_new>>
M.Double_k.<<special_new>>
del M.Double_k.<<special_name>>
M.double_k.v = <<num>>
=== missing classes
class Lazy_k(dict):
    def __missing__(self, key):
        return len(key)
lazy_k = Lazy_k(a=1)
---
r = (lazy_k["a"], lazy_k["zz"])
---
M.Lazy_k.__missing__ = lambda self, key: 9
M.Lazy_k.__getitem__ = lambda self, key: key * 2
M.lazy_k["zz"] = <<num>>
del M.Lazy_k.__missing__
=== subclass_list classes
class Bag_k(list):
    def top(self):
        return self[-1]
bag_k = Bag_k([1, 2, <<num>>])
---
r = (bag_k.top(), len(bag_k), bag_k[0], [x for x in bag_k], 2 in bag_k)
---
M.Bag_k.top = lambda self: self[0]
M.Bag_k.__len__ = lambda self: 8
M.Bag_k.__getitem__ = lambda self, i: i
M.Bag_k.__contains__ = lambda self, x: 5
M.Bag_k.__iter__ = lambda self: iter("ab")
M.bag_k.append(<<num>>)
=== metaclass classes
class Meta_k(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = 1
        return made
    def __instancecheck__(cls, item):
        return getattr(item, "tag", 0) == 1
    def __len__(cls):
        return 4
    def __getitem__(cls, i):
        return i
    def __iter__(cls):
        return iter([1, 2])
    @property
    def level(cls):
        return 5
class Made_k(metaclass=Meta_k):
    def __init__(self, v=1):
        self.v = v
made_k = Made_k()
---
r = <<isinstance(made_k, Made_k)|Made_k(n).tag|len(Made_k)|Made_k[3]|list(Made_k)|Made_k.level|isinstance(n, Made_k)|Made_k(n).v|Made_k.other>>
---
M.Meta_k.__call__ = lambda cls, *args: type.__call__(cls, 3)
M.Meta_k.__instancecheck__ = lambda cls, item: False
M.Meta_k.__instancecheck__ = lambda cls, item: True
M.Meta_k.__len__ = lambda cls: 6
M.Meta_k.__getitem__ = lambda cls, i: i + 1
M.Meta_k.__iter__ = lambda cls: iter([3])
M.Meta_k.level = property(lambda cls: 8)
M.Meta_k.other = <<num>>
M.Meta_k.__getattr__ = lambda cls, name: name
M.Made_k.__init__ = lambda self, v=1: setattr(self, "v", -1)
M.made_k.tag = 2
del M.Meta_k.__call__
del M.Meta_k.__instancecheck__
=== context classes
class Scope_k:
    def __init__(self, v=1):
        self.v = v
    def __enter__(self):
        return self.v
    def __exit__(self, kind, error, trace):
        self.v = kind is None
        return False
scope_k = Scope_k()
---
with <<scope_k|Scope_k(n)>> as r:
    h = h * 2
    <<pass|assert n < 200>>
r = (r, scope_k.v)
---
M.Scope_k.__enter__ = lambda self: 9
M.Scope_k.__exit__ = lambda self, *error: True
M.Scope_k.__exit__ = lambda self, *error: setattr(self, "v", 5)
M.scope_k = contextlib.nullcontext(3)
M.scope_k.v = <<num>>
del M.Scope_k.__exit__
=== new_init classes
class New_k:
    def __new__(cls, *args):
        made = super().__new__(cls)
        made.extra = 1
        return made
    def __init__(self, v):
        self.v = v
---
o = New_k(n)
r = (o.extra, o.v, <<o|a * o.v>>)
---
M.New_k.__init__ = lambda self, v: setattr(self, "v", v * 2)
M.New_k.__new__ = staticmethod(lambda cls, *args: object.__new__(type("New_k", (), {"extra": 2, "v": 3})))
M.New_k.__new__ = lambda cls, *args: object.__new__(cls)
M.New_k.extra = <<num>>
M.New_k.v = property(lambda self: 3, lambda self, v: None)
M.New_k.__setattr__ = lambda self, name, v: object.__setattr__(self, name, 0)
=== abstract classes
class Abstract_k(abc.ABC):
    @abc.abstractmethod
    def go(self):
        pass
class Other_k:
    v = 1
other_k = Other_k()
---
r = (<<isinstance(other_k, Abstract_k)|issubclass(Other_k, Abstract_k)|isinstance(n, Abstract_k)>>, hasattr(other_k, "go"))
---
M.Abstract_k.register(M.Other_k)
M.Abstract_k.register(<<int|float>>)
M.Abstract_k.__subclasshook__ = classmethod(lambda cls, c: True)
M.Other_k.go = lambda self: 1
M.Other_k.__bases__ = (type("Middle", (), {}),)
=== isinstance_class classes
class A_k:
    def go(self, x):
        return x * 2
class B_k(A_k):
    def go(self, x):
        return x * 3
class C_k:
    def go(self, x):
        return x * 5
item_k = A_k()
---
h = item_k.go(h)
r = (isinstance(item_k, B_k), isinstance(item_k, A_k), type(item_k) is A_k, type(item_k).__name__, issubclass(type(item_k), A_k))
---
M.item_k.__class__ = M.<<A_k|B_k|C_k>>
M.item_k = M.<<A_k|B_k|C_k>>()
M.A_k.__name__ = "Renamed"
M.B_k.go = lambda self, x: x
M.A_k, M.C_k = M.C_k, M.A_k
M.A_k.__qualname__ = "Other.Name"
=== class_dict classes
class Table_k:
    <<low|high>> = <<small>>
    names = ["low", "high"]
    def read(self):
        return [getattr(self, name, None) for name in self.names]
table_k = Table_k()
---
r = (table_k.read(), hasattr(table_k, "mid"))
---
M.Table_k.low = <<num>>
M.Table_k.names.append("mid")
M.Table_k.mid = 3
M.table_k.high = <<num>>
M.Table_k.names = ("high",)
del M.Table_k.mid
setattr(M.Table_k, "low", property(lambda self: 4))
=== class_vars classes
class Vars_k:
    low = 1
---
r = sorted(k for k in <<vars(Vars_k)|Vars_k.__dict__|dir(Vars_k)>> if not k.startswith("__"))
---
M.Vars_k.mid = 3
del M.Vars_k.low
=== slots classes
class Slots_k:
    __slots__ = ("v", "w")
    def __init__(self):
        self.v = <<num>>
slots_k = Slots_k()
---
<<slots_k.w = n|pass|slots_k.v = slots_k.v * 3>>
r = (slots_k.v, hasattr(slots_k, "w"), a * slots_k.v)
---
M.slots_k.v = <<num>>
del M.slots_k.v
M.Slots_k.v = property(lambda self: 3)
M.Slots_k.w = 5
=== getattr_hook classes
class Open_k:
    v = 2
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return len(name)
open_k = Open_k()
---
r = (open_k.abc, open_k.v, hasattr(open_k, "_x"))
---
M.Open_k.__getattr__ = lambda self, name: name
del M.Open_k.__getattr__
M.open_k.abc = <<num>>
M.Open_k.abc = <<num>>
del M.open_k.abc
M.Open_k.__getattribute__ = lambda self, name: 1
M.Open_k._x = 3
=== cached_property classes
class Cached_k:
    def __init__(self):
        self.v = <<small>>
    @functools.cached_property
    def twice(self):
        return self.v * 2
cached_k = Cached_k()
---
r = cached_k.twice
---
M.cached_k.v = <<num>>
M.cached_k.__dict__.pop("twice", None)
M.cached_k = M.Cached_k()
M.Cached_k.twice = 7
=== dataclass classes
@dataclasses.dataclass
class Data_k:
    v: float = 1.0
    w: int = 2
    def total(self):
        return self.v + self.w
data_k = Data_k()
---
r = (data_k.total(), Data_k(n).v, data_k == Data_k(), repr(data_k))
---
M.data_k.v = <<num>>
M.Data_k.total = lambda self: self.v - self.w
M.Data_k.__eq__ = lambda self, other: "eq"
M.Data_k.__init__.__defaults__ = (<<small>>, 3)
M.Data_k.__repr__ = lambda self: "data"
M.Data_k.__init__ = lambda self, v=3: setattr(self, "v", 9) or setattr(self, "w", 9)
=== enum classes
class Color_k(enum.Enum):
    RED = 1
    BLUE = 2
mode_k = Color_k.RED
---
if mode_k is Color_k.RED:
    h = h * 2
r = (mode_k.name, mode_k.value)
---
M.mode_k = M.Color_k.BLUE
M.mode_k = M.Color_k.RED
M.Color_k.RED._value_ = <<num>>
=== named_tuple classes
Point_k = collections.namedtuple("Point_k", "x y")
point_k = Point_k(<<num>>, 2)
---
r = (point_k.x, point_k[1], Point_k(n, 1)._replace(y=3), a * point_k.x)
---
M.point_k = M.Point_k(<<num>>, 3)
M.Point_k.z = 3
M.Point_k.x = property(lambda self: 5)
M.point_k = (1, 2)
=== counter_class classes
class Counted_k:
    total = 0
    log = []
    def go(self, x):
        <<type(self).total += 1|self.total += 1|self.log.append(n)|Counted_k.log.append(len(self.log))>>
        return x
counted_k = Counted_k()
---
h = counted_k.go(h)
r = (Counted_k.total, len(counted_k.log))
---
M.Counted_k.total = <<num>>
M.Counted_k.log = []
M.counted_k.total = <<num>>
M.counted_k.log = [1]
=== patched_function patches
---
h = <<F|chainer.functions>>.<<tanh|sigmoid|relu>>(h)
r = <<F.sum(h)|F.tanh(h + 1)|F.mean(h)|None>>
---
!patch("chainer.functions.<<tanh|sigmoid|relu>>", fakes.fake_tanh)
!patch("chainer.functions.tanh", fakes.fake_double)
!patch("chainer.functions.<<sum|mean>>", fakes.fake_tanh)
!patch("chainer.functions.activation.tanh.tanh", fakes.fake_tanh)
!unpatch()
!unpatch()
=== patched_forward patches
---
h = F.<<tanh(h)|sigmoid(h)|relu(h)|sin(h)|exp(F.tanh(h))>>
---
!patch("chainer.functions.activation.tanh.Tanh.forward_cpu", fakes.forward)
!patch("chainer.functions.activation.sigmoid.Sigmoid.forward_cpu", fakes.forward)
!patch("chainer.functions.activation.relu.ReLU.forward_cpu", fakes.forward)
!patch("chainer.functions.math.trigonometric.Sin.forward_cpu", fakes.forward)
!patch("chainer.functions.activation.tanh.Tanh.backward", fakes.backward)
!patch("chainer.functions.activation.sigmoid.Sigmoid.backward", fakes.backward)
!patch("chainer.functions.math.trigonometric.Sin.backward", fakes.backward)
!patch("chainer.function_node.FunctionNode.apply", fakes.apply)
!unpatch()
=== patched_numpy patches
---
r = <<np.sum(a)|np.sum(h.array)|np.fmax(a, 1)|np.tanh(h.array)|np.sqrt(np.abs(a))|np.zeros(2)|np.random.rand(2)|np.dot(a, a)|np.pi * a>>
---
!patch("numpy.sum", fakes.fake_sum)
!patch("numpy.fmax", fakes.fake_two)
!patch("numpy.tanh", fakes.fake_array)
!patch("numpy.sqrt", fakes.fake_array)
!patch("numpy.zeros", np.ones)
!patch("numpy.random.rand", np.ones)
!patch("numpy.dot", fakes.fake_two)
!patch("numpy.pi", 3)
!unpatch()
=== patched_standard patches
---
r = <<math.sqrt(4)|math.sqrt(abs(n))|math.floor(2.5)|operator.add(n, 1)|random.random()|copy.copy([n])|functools.reduce(max, [1, n])|json.dumps([t])|itertools.count|time.time() > 0|os.path.join(t, "b")|string.digits>>
---
!patch("math.sqrt", fakes.fake_sqrt)
!patch("math.floor", fakes.fake_sqrt)
!patch("operator.add", fakes.fake_plain_two)
!patch("random.random", lambda: 0.5)
!patch("copy.copy", fakes.fake_plain)
!patch("functools.reduce", fakes.fake_plain_two)
!patch("json.dumps", fakes.fake_plain)
!patch("time.time", lambda: -1.0)
!patch("os.path.join", fakes.fake_plain_two)
!patch("string.digits", "12")
!unpatch()
=== patched_builtin patches
---
print("t", t)
r = <<abs(-n)|round(2.567, 1)|divmod(7, 2)|pow(2, 3)|bin(5)|chr(65)|callable(n)|hex(10)|ascii("x")>>
---
!patch("builtins.print", fakes.fake_print)
!patch("builtins.abs", fakes.fake_plain)
!patch("builtins.round", fakes.fake_plain_two)
!patch("builtins.divmod", fakes.fake_plain_two)
!patch("builtins.pow", fakes.fake_plain_two)
!patch("builtins.bin", fakes.fake_plain)
!patch("builtins.chr", fakes.fake_plain)
!patch("builtins.callable", fakes.fake_plain)
!patch("builtins.extra_k", 3)
!unpatch()
=== patched_methods patches
---
h = <<h.reshape(-1)|h.transpose()|h * 2 + 1|-h|F.linear(h, np.ones((2, 3), h.dtype))|L.Linear.forward and h|h[0]>>
---
!patch("chainer.Variable.reshape", lambda self, *shape: self * 5)
!patch("chainer.Variable.transpose", lambda self, *axes: self * 5)
!patch("chainer.Variable.__mul__", lambda self, other: self + other)
!patch("chainer.Variable.__neg__", lambda self: self + 9)
!patch("chainer.Variable.__add__", lambda self, other: self - other)
!patch("chainer.functions.linear", lambda x, w: x * 5)
!patch("chainer.functions.connection.linear.LinearFunction.forward", fakes.forward)
!patch("chainer.Variable.__getitem__", lambda self, i: self * 2)
!unpatch()
=== patched_links patches
linear_k = L.Linear(3, 3, initialW=np.eye(3, dtype="f") * 0.5)
---
h = linear_k(h.reshape(-1, 3)[:1] if h.ndim else h)
---
!patch("chainer.links.Linear.forward", lambda self, x: x * 3)
!patch("chainer.Link.__call__", lambda self, x: x * 4)
M.linear_k.forward = lambda x: x * 5
M.linear_k.W.array[...] = 0.25
M.linear_k = L.Linear(3, 3, initialW=np.eye(3, dtype="f"))
M.linear_k = F.tanh
!unpatch()
=== globals_made globals
MADE_k = 5
---
global <<MADE_k, TEMP_k|TEMP_k>>
TEMP_k = n
r = TEMP_k
<<del TEMP_k|pass|TEMP_k = 2>>
---
M.TEMP_k = <<num>>
del M.TEMP_k
M.MADE_k = <<num>>
=== globals_deleted globals
GONE_k = 3
---
global GONE_k
<<GONE_k = n|pass>>
if <<h.array.sum() > 1|n > 1|True>>:
    del GONE_k
r = "GONE_k" in globals()
---
M.GONE_k = <<num>>
del M.GONE_k
=== attributes_deleted globals
class Gone_k:
    pass
gone_k = Gone_k()
table_k = {}
---
<<gone_k.v = n|pass|gone_k.v = 1|table_k["v"] = h>>
if <<h.array.sum() > 1|n > 1|True|hasattr(gone_k, "v")>>:
    <<del gone_k.v|table_k.pop("v", None)|del table_k["v"]>>
r = (hasattr(gone_k, "v"), len(table_k))
---
M.gone_k.v = <<num>>
M.table_k["v"] = <<num>>
del M.gone_k.v
M.Gone_k.v = 3
M.table_k.clear()
=== closure_function closures
def outer_k():
    def inner(x):
        return x * 2
    def call(x):
        return inner(x)
    def put(new):
        nonlocal inner
        inner = new
    return call, put
call_k, set_k = outer_k()
---
h = call_k(h)
---
M.set_k(lambda x: x * 3)
M.set_k(F.tanh)
M.set_k(lambda x: F.tanh(x) + 1)
M.call_k.__closure__[0].cell_contents = lambda x: x - 1
M.call_k = lambda x: x * 7
=== function_attributes closures
def tagged_k(x):
    return x * tagged_k.scale
tagged_k.scale = <<small>>
---
h = tagged_k(h)
---
M.tagged_k.scale = <<num>>
M.tagged_k.__code__ = (lambda x: x * 3).__code__
M.tagged_k = functools.partial(M.tagged_k)
del M.tagged_k.scale
M.tagged_k = lambda x: F.tanh(x) * 2
=== partial closures
def scaled_k(x, scale=1, shift=0):
    return x * scale + shift
part_of_k = functools.partial(scaled_k, scale=<<small>>)
---
h = part_of_k(h)
---
M.part_of_k = functools.partial(M.scaled_k, scale=<<num>>)
M.part_of_k.keywords["shift"] = <<small>>
M.scaled_k = lambda x, **more: x
M.part_of_k.__setstate__((M.scaled_k, (), {"shift": 3}, {}))
=== decorated closures
def deco_k(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args) * factor_k
    wrapper.calls = 0
    return wrapper
factor_k = <<small>>
@deco_k
def wrapped_k(x):
    return x + 1
---
h = wrapped_k(h)
r = wrapped_k.calls
---
M.factor_k = <<num>>
M.wrapped_k.calls = 10
M.wrapped_k = M.deco_k(lambda x: x * 2)
M.wrapped_k = M.wrapped_k.__wrapped__
=== lru closures
@functools.lru_cache(maxsize=None)
def cached_k(v):
    return v * scale_k
scale_k = 2
---
r = cached_k(<<n|3>>)
---
M.scale_k = <<small>>
M.cached_k.cache_clear()
=== single_dispatch closures
@functools.singledispatch
def dispatched_k(v):
    return "other"
@dispatched_k.register(int)
def _(v):
    return v + 1
---
r = dispatched_k(n)
---
M.dispatched_k.register(<<int|float|bool>>)(lambda v: "new")
M.dispatched_k.register(object)(lambda v: "any")
=== generator closures
def rows_k(x):
    for i in range(rounds_k):
        yield x * (i + 1)
rounds_k = 2
@contextlib.contextmanager
def scope_k(v):
    log_k.append(v)
    try:
        yield v * 2
    finally:
        log_k.append("out")
log_k = []
---
h = sum(rows_k(h))
with scope_k(n) as r:
    h = h + 1
---
M.rounds_k = <<1|2|3>>
M.rows_k = lambda x: [x]
M.log_k.clear()
M.log_k = []
M.scope_k = contextlib.nullcontext
=== list_contents containers
parts_k = [F.tanh, F.sin]
numbers_k = [1, <<num>>, 3]
---
for part in parts_k:
    h = part(h)
r = (list(numbers_k), numbers_k[-1], len(numbers_k))
<<numbers_k.append(n)|pass|numbers_k[0] = n|numbers_k.reverse()|numbers_k.pop() if numbers_k else 0>>
---
M.parts_k.append(F.relu)
M.parts_k.reverse()
M.parts_k[0] = lambda x: x * 2
M.parts_k = (F.tanh,)
M.numbers_k.append(<<num>>)
M.numbers_k[0] = <<num>>
del M.numbers_k[:1]
M.parts_k.pop()
M.numbers_k[1:] = [<<num>>]
=== dict_contents containers
table_k = {"a": 1, "b": <<num>>}
---
r = [(k, v) for k, v in table_k.items()]
<<table_k[t] = n|pass|table_k.setdefault(t, n)|table_k.update(b=n)|table_k.pop("a", None)>>
if t in table_k:
    h = h * 2
---
M.table_k["b"] = <<num>>
M.table_k["c"] = <<num>>
M.table_k.pop("a", None)
M.table_k = dict(b=<<num>>, a=2)
M.table_k["a"] = M.table_k.pop("a", 0)
M.table_k = collections.OrderedDict(a=1, b=2)
M.table_k[<<1|True|1.0|"a">>] = 3
M.table_k.clear()
=== aliases containers
first_k = [1, 2]
second_k = first_k
class Node_k:
    pass
left_k, right_k = Node_k(), Node_k()
left_k.x = right_k.x = 1
left_k.next = right_k
---
first_k[0] = n
left_k.x = 3
left_k.next.x = 4
r = (second_k[0], first_k is second_k, left_k.x, right_k.x, left_k.next is right_k)
---
M.second_k = [7, 8]
M.first_k = M.second_k
M.right_k = M.left_k
M.left_k.next = M.left_k
M.left_k.next = M.right_k
M.right_k = M.Node_k()
=== arrays_kept containers
store_k = {"x": np.zeros(3, "f"), "h": None}
---
<<store_k["h"] = h|store_k["x"] = a|store_k["x"][0] = n|store_k["x"] += 1|store_k["x"] = store_k["x"] + a>>
r = store_k["x"] * 1
h = h * 2 if store_k["h"] is None else h + 1
---
M.store_k["x"] = np.<<zeros|ones>>(<<3|2|(2, 3)>>, "<<f|d|b|i>>")
M.store_k["x"][...] = 2
M.store_k["h"] = None
M.store_k["x"] = <<num>>
M.store_k["h"] = chainer.Variable(np.ones((2, 3), "f"))
M.store_k["x"] = M.store_k["x"][::-1]
=== sets containers
seen_k = {1, 2}
queue_k = collections.deque([1, 2], maxlen=3)
default_k = collections.defaultdict(<<int|list>>)
---
<<seen_k.add(t)|pass|queue_k.append(n)|default_k[t]>>
r = (t in seen_k, len(seen_k), list(queue_k), len(default_k))
---
M.seen_k.add("a")
M.seen_k.discard("a")
M.seen_k = frozenset("ab")
M.queue_k.append(<<num>>)
M.queue_k.clear()
M.default_k["a"] = 1
M.default_k.default_factory = <<float|None|str>>
M.queue_k = collections.deque([3])
=== texts texts
name_k = "a"
---
r = (t + name_k, t == name_k, f"{t:>8}", t.startswith("b"), len(t), t.upper(), {"a": 1}.get(t, 2))
<<print(f"step {t}")|print(t, name_k, n)|pass>>
if t == name_k:
    h = h * 2
---
M.name_k = "<<a|b|batch1|>>"
M.name_k = <<3|None|"batch2"|b"a">>
=== text_kept texts
class Named_k:
    pass
named_k = Named_k()
history_k = []
---
named_k.last = <<t|f"{t}:{n}"|t.strip()|t * 2>>
<<history_k.append(t)|pass>>
---
M.named_k.last = "x"
M.history_k.clear()
=== raises exceptions
class Failure_k(ValueError):
    def __str__(self):
        return "failed: " + ", ".join(map(str, self.args))
limit_k = <<2|70000|1e39>>
state_k = [0]
---
state_k[0] += 1
if n > limit_k:
    raise <<Failure_k(n, t)|ValueError(f"{n} is more than {limit_k}")|KeyError(t)|Failure_k("text")|Failure_k|StopIteration(n)>>
state_k.append(n)
---
M.limit_k = <<num>>
M.Failure_k.__str__ = lambda self: "other"
M.Failure_k.__init__ = lambda self, *args: None
M.Failure_k = RuntimeError
M.state_k[:] = [0]
=== catches exceptions
class Caught_k(Exception):
    pass
def risky_k(v):
    if v > 2:
        raise Caught_k(v)
    return 10 / v
---
try:
    r = risky_k(n)
except Caught_k as error:
    r = ("caught", str(error), error.args)
except ZeroDivisionError as error:
    r = ("zero", str(error))
finally:
    h = h + 1
---
M.risky_k = lambda v: v
M.Caught_k = ArithmeticError
M.Caught_k.__bases__ = (ZeroDivisionError,)
M.risky_k = lambda v: 10 / (v - 1)
M.Caught_k.__str__ = lambda self: "mine"
=== fails exceptions
items_k = [1, 2, 3]
table_k = {"a": 1}
---
r = <<items_k[n]|table_k[t]|10 / n|10 // n|int(t)|items_k.index(n)|a[n]|h[n]|[1][n:]|10 % n|t[n]|h + a|items_k[t]>>
---
M.items_k.append(4)
M.items_k = {200: 5, 1: 2, 2: "z"}
M.table_k["batch1"] = 2
M.table_k = "text"
=== asserts exceptions
low_k = <<num>>
---
assert n >= low_k, f"{n} < {low_k}"
assert t
---
M.low_k = <<num>>
M.AssertionError = ValueError
=== same_gradient gradients
class Add_k(chainer.FunctionNode):
    scale = 1
    def forward(self, xs):
        <<pass|self.retain_inputs((0,))|self.retain_inputs((0, 1))>>
        return xs[0] + xs[1],
    def backward(self, indexes, gs):
        <<return gs[0], gs[0]|g = gs[0] * 2; return g, g|return gs[0], gs[0] * 2|return gs[0] * self.scale, None|return F.tanh(gs[0]), gs[0]>>
---
h, = Add_k().apply((h, <<h * 0.5|h|F.sin(h)|np.ones_like(h.array)|h * n>>))
---
M.Add_k.forward = lambda self, xs: (xs[0] - xs[1],)
M.Add_k.backward = lambda self, indexes, gs: (gs[0], -gs[0])
M.Add_k.backward = lambda self, indexes, gs: (gs[0], None)
M.Add_k.scale = <<small>>
M.Add_k = type("Add_k", (M.Add_k,), {"forward": lambda self, xs: (xs[0] * 2 + xs[1],)})
=== own_product gradients
class Mul_k(chainer.FunctionNode):
    def forward(self, xs):
        self.retain_inputs((0, 1))
        return xs[0] * xs[1],
    def backward(self, indexes, gs):
        x, y = self.get_retained_inputs()
        return gs[0] * y, gs[0] * x
def mul_k(x, y):
    return Mul_k().apply((x, y))[0]
---
h = mul_k(h, <<h|F.sin(h)|h + n|F.tanh(h)>>)
---
M.Mul_k.backward = lambda self, indexes, gs: (gs[0], gs[0])
M.Mul_k.forward = lambda self, xs: self.retain_inputs((0, 1)) or (xs[0] + xs[1],)
M.mul_k = lambda x, y: x * y
=== own_old_function gradients
class Old_k(chainer.Function):
    def forward(self, xs):
        return xs[0] * self.scale,
    def backward(self, xs, gs):
        return gs[0] * self.scale,
    scale = np.float32(2)
---
h = Old_k()(h)
---
M.Old_k.scale = np.float32(<<3|0.5>>)
M.Old_k.forward = lambda self, xs: (xs[0] + 1,)
M.Old_k.backward = lambda self, xs, gs: (gs[0],)
=== inner_gradient gradients
---
y = F.sum(F.tanh(h) * h)
if chainer.config.enable_backprop and h.requires_grad:
    g, = chainer.grad([y], [h], enable_double_backprop=<<True|False>>)
    h = h + g
---
=== products gradients
---
h = <<h * h|h + h|h * h.array|F.tanh(h) + h|F.sum(h) + h|F.concat([h, h], 0)|F.stack([h, h])|h * 0 + 1|F.square(h) - h|F.exp(-h)>>
---
=== no_gradients gradients
class Flags_k:
    on = True
---
if Flags_k.on:
    h = F.tanh(h)
else:
    with chainer.<<no_backprop_mode()|using_config("enable_backprop", False)|using_config("train", False)>>:
        h = F.tanh(h) * 2
---
M.Flags_k.on = False
M.Flags_k.on = True
=== config_read config
---
if chainer.config.train:
    h = h * 2
r = (chainer.config.debug, getattr(chainer.config, "mine_k", None), chainer.config.enable_backprop, chainer.is_debug())
---
!chainer.config.mine_k = <<num>>
!chainer.global_config.mine_k = <<num>>
!del chainer.config.mine_k
!chainer.global_config.train = <<True|False>>
=== config_number config
---
<<use:chainer.config.user_k>>
---
!chainer.config.user_k = <<num>>
!chainer.config.user_k = <<num>>
!chainer.global_config.user_k = <<num>>
=== config_written config
---
chainer.config.<<seen_k|train>> = <<n|bool(n)|False>>
with chainer.using_config("mine_k", n):
    r = chainer.config.mine_k
---
!chainer.config.seen_k = <<num>>
!chainer.config.train = True
=== config_nan config
---
h = <<F.log(h)|F.sqrt(h)|h / 0|F.exp(h * 1000)|h * n>>
---
!chainer.config.debug = True
!chainer.config.debug = False
=== drawn config
---
h = F.dropout(h, <<0.5|ratio_k>>)
r = np.random.<<rand(2)|randint(0, 5)|permutation(3)>>
---
M.ratio_k = <<0.2|0.5|0>>
!chainer.config.train = <<True|False>>
!np.random.seed(<<1|2>>)
=== surroundings outside
context_k = contextvars.ContextVar("context_k", default=1)
local_k = threading.local()
local_k.v = 1
---
r = <<os.environ.get("SESSION_k", "none")|context_k.get()|local_k.v|np.geterr()["divide"]|sys.argv[:1]|len(sys.path) > 0|sys.getrecursionlimit() > 0|warnings.filters[0][0]|logging.getLogger("k").level>>
---
!os.environ["SESSION_k"] = "<<a|b>>"
!os.environ.pop("SESSION_k", None)
M.context_k.set(<<num>>)
M.local_k.v = <<num>>
!np.seterr(divide="<<ignore|warn>>")
!logging.getLogger("k").setLevel(<<10|20>>)
=== numpy_errors outside
---
r = <<a / 0|np.log(a - 1.0)|h.array * 1e38 * 10|np.sqrt(-np.abs(h.array))|np.divide(h.array, 0 * h.array)>>
h = h * 2
---
!np.seterr(all="<<ignore|warn|raise>>")
!np.seterr(divide="<<ignore|warn|raise>>", invalid="<<ignore|warn>>")
=== file_read outside
def read_k():
    with open(FILE) as file:
        return file.read()
---
r = read_k()
---
!write_file("<<a|b|c>>")
=== model_parameters links
class Net_k(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3, initialW=np.arange(9, dtype="f").reshape(3, 3) * 0.1)
        self.scale = <<small>>
        self.calls = 0
        self.add_persistent("kept", np.zeros(2, "f"))
    def forward(self, x):
        self.calls += 1
        return <<F.tanh(self.l(x)) * self.scale|self.l(x) + self.kept[0]|self.l(x) * self.calls|self.act(self.l(x))>>
    def act(self, x):
        return F.sigmoid(x)
net_k = Net_k()
---
h = net_k(h[:1].reshape(1, -1)[:, :3] if h.ndim == 2 else h)
---
M.net_k.l.W.array[...] *= 2
M.net_k.l.W.array = np.ones((3, 3), "<<f|d>>")
M.net_k.l = L.Linear(3, <<3|2>>, initialW=<<0.5|1>>)
M.net_k.l.b = None
M.net_k.l.b.requires_grad = False
M.net_k.scale = <<num>>
M.net_k.calls = <<num>>
M.net_k.kept[...] = 3
M.net_k.kept = np.full(2, 5, "<<f|d>>")
M.net_k.kept = [<<small>>]
M.net_k = copy.deepcopy(M.net_k)
M.net_k = M.net_k.copy(mode="<<share|copy>>")
M.Net_k.act = lambda self, x: F.tanh(x)
M.net_k.act = lambda x: x * 2
M.net_k.forward = lambda x: x * 3
M.Net_k.forward = lambda self, x: x * 4
M.net_k.l.W.update_rule = None
M.net_k.disable_update()
M.net_k.cleargrads()
M.net_k.l.add_hook(HOOK())
M.net_k.add_hook(HOOK())
M.net_k.l.delete_hook("session")
M.net_k = M.Net_k()
M.net_k.add_link("extra", L.Linear(2, 2, initialW=1))
M.net_k.to_chx() if False else None
M.net_k.__class__.__call__ = lambda self, x: x * 6
=== normalisation links
norm_k = L.BatchNormalization(3)
---
h = norm_k(h.reshape(-1, 3)) if h.size and h.size % 3 == 0 else h
---
!chainer.config.train = False
!chainer.config.train = True
M.norm_k.avg_mean[...] = 1
M.norm_k.avg_var = np.full(3, 4, "f")
M.norm_k.decay = <<0.5|0.9>>
M.norm_k.eps = <<1e-3|2>>
M.norm_k.gamma.array[...] = 3
M.norm_k.N = 5
M.norm_k = copy.deepcopy(M.norm_k)
M.norm_k = L.BatchNormalization(3, use_gamma=False)
=== link_list links
chain_k = chainer.Sequential(L.Linear(3, 3, initialW=0.5), F.tanh)
---
h = chain_k(h.reshape(-1, 3)) if h.size % 3 == 0 else h
r = len(chain_k)
---
M.chain_k.append(F.sin)
M.chain_k[0].W.array[...] = 0.25
del M.chain_k[1]
M.chain_k.insert(0, lambda x: x * 2)
M.chain_k[0] = L.Linear(3, 3, initialW=1)
M.chain_k = chainer.Sequential(F.sin)
M.chain_k.flatten()
M.chain_k[1] = F.relu
=== optimizer links
fit_k = L.Linear(3, 2, initialW=0.3)
sgd_k = chainer.optimizers.<<SGD(0.1)|Adam()|MomentumSGD(0.1)>>.setup(fit_k)
---
h = fit_k(h.reshape(-1, 3)) if h.size % 3 == 0 else h
---
M.fit_k.cleargrads(); F.sum(M.fit_k(np.ones((1, 3), "f"))).backward(); M.sgd_k.update()
M.sgd_k.lr = <<0.5|1>>
M.sgd_k.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
M.fit_k.W.update_rule.enabled = False
M.sgd_k.setup(M.fit_k)
=== printed texts
class Shown_k:
    def __repr__(self):
        return "shown"
shown_k = Shown_k()
---
print(<<shown_k|n, t|f"{n:>10} {t!r}"|h.shape, h.dtype|a.dtype, len(a)|type(h).__name__, sep="-"|a>>)
---
M.Shown_k.__repr__ = lambda self: "other"
M.Shown_k.__str__ = lambda self: "text"
M.shown_k = <<num>>
M.print = lambda *args, **more: None
=== type_of arguments
---
r = (h.shape, str(h.dtype), h.ndim, a.dtype.name, type(n).__name__, h.size > 3, len(a), a.shape, a.sum(), a.dtype == np.int8)
if h.dtype == np.float64:
    h = h * 2
---
=== array_maths arguments
---
r = <<a + a|a * 2|a // 2|a.mean()|a / 2|a.astype("f") * h.array.sum()|np.stack([a, a])|a[::-1]|a > 1|a.max()|a ** 2|a.cumsum()|a.tolist()|-a|a @ a>>
<<a[0] = 1|a += 1|pass|pass|pass|a[0] = n|a += n|a *= n>>
---
=== staged_branch arguments
rate_k = <<small>>
---
if float(h.array.sum()) > <<0|1|3>>:
    h = F.tanh(h) * rate_k
    r = "more"
else:
    h = h * 0.5
    r = n
---
M.rate_k = <<num>>
M.rate_k = <<num>>
=== loops arguments
rounds_k = 3
---
for i in range(rounds_k):
    if float(h.array.sum()) > 2:
        h = h * 0.5
    else:
        h = h + i
        <<break|continue|pass>>
r = i
---
M.rounds_k = <<1|2|5|12>>
M.range = lambda n: [0]
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
