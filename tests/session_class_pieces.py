"""Pieces of session programs (`session_pieces` describes the form): classes, and what they define."""

TEXT = r'''
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
'''
