"""More pieces of session programs (`session_pieces` describes the form): state that calls and the caller change in turns."""

TEXT = r'''
=== whole_step training
class Fit_k(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 3, initialW=np.arange(9, dtype="f").reshape(3, 3) * 0.1 - 0.3)
            self.b = L.Linear(3, 3, initialW=0.2)
        self.add_persistent("mean", np.zeros(3, "f"))
        self.steps = 0
        self.last = None
    def forward(self, x):
        return self.b(F.tanh(self.a(x)))
fit_k = Fit_k()
rule_k = chainer.optimizers.<<SGD(0.1)|Adam(0.01)|MomentumSGD(0.1)|AdaGrad(0.1)|RMSprop(0.1)>>.setup(fit_k)
log_k = []
saved_k = chainer.serializers.DictionarySerializer()
---
x = F.cast(h.reshape(-1, 3), "f") if h.size and h.size % 3 == 0 else F.cast(F.sum(h), "f").reshape(1, 1) * np.ones((1, 3), "f")
y = fit_k(x.array)
<<fit_k.cleargrads()|fit_k.zerograds()|pass|fit_k.a.cleargrads()|fit_k.b.W.cleargrad()|rule_k.target.cleargrads()>>
loss = F.sum(y * y) <<* rule_k.t|+ fit_k.steps|+ F.sum(fit_k.a.W)|* 1|* n>>
loss.backward()
<<fit_k.mean[...] = 0.9 * fit_k.mean + 0.1 * y.array.mean(0)|fit_k.mean += y.array.mean(0)|fit_k.mean = fit_k.mean + y.array.mean(0)|fit_k.last = y.array|fit_k.last = fit_k.a.W.grad|pass>>
fit_k.steps += 1
<<if n > 2: raise ValueError(n)|pass|assert fit_k.mean.sum() < 1, "far"|if fit_k.steps % 3 == 1: fit_k.a.W.grad *= 0.5|pass|if t == "b": fit_k.b.W.array[...] *= 0.5>>
rule_k.update()
<<log_k.append(rule_k.t)|fit_k.b.W.array *= 0.9|fit_k.a.W.array[0] = fit_k.b.W.array[1]|pass|saved_k.save(fit_k)|rule_k.new_epoch()|fit_k.steps = 0 if fit_k.steps > 3 else fit_k.steps>>
r = (loss.array, rule_k.t, fit_k.a.W.grad <<is None|* 1>>, fit_k.mean.sum(), fit_k.last is None)
<<h = h * fit_k.steps|h = h + y.array.sum()|pass>>
---
M.fit_k.a = M.fit_k.b
M.fit_k.b = M.fit_k.a
M.fit_k.a.W = M.fit_k.b.W
M.fit_k.a.W.array = M.fit_k.b.W.array
M.fit_k.b = L.Linear(3, 3, initialW=0.5)
M.fit_k.b = L.Linear(3, 3, initialW=0.5); M.rule_k.setup(M.fit_k)
M.fit_k.a.W.array = np.ones((3, 3), "<<f|f|d>>")
M.fit_k.a.W = chainer.Parameter(np.ones((3, 3), "f"))
M.fit_k.a.W.array[...] = 0.3
M.fit_k = copy.deepcopy(M.fit_k)
M.fit_k, M.rule_k = copy.deepcopy((M.fit_k, M.rule_k))
M.rule_k = copy.deepcopy(M.rule_k)
M.rule_k.setup(M.fit_k)
M.rule_k = chainer.optimizers.<<SGD(0.5)|Adam(0.1)|NesterovAG(0.1)>>.setup(M.fit_k)
M.rule_k.add_hook(chainer.optimizer_hooks.<<WeightDecay(0.1)|GradientClipping(0.1)|Lasso(0.1)>>, "hook")
M.rule_k.remove_hook("hook")
M.rule_k.t = <<0|10>>
M.rule_k.lr = <<small>>
M.fit_k.a.W.update_rule.hyperparam.lr = 0.5
M.fit_k.a.W.update_rule = None
M.fit_k.a.disable_update()
M.fit_k.enable_update()
M.fit_k.cleargrads()
M.fit_k.zerograds()
M.fit_k.a.W.grad = np.ones((3, 3), "f")
M.fit_k.a.W.grad = M.fit_k.b.W.grad
M.fit_k.b.b.requires_grad = False
M.saved_k = chainer.serializers.DictionarySerializer(); M.saved_k.save(M.fit_k)
chainer.serializers.NpzDeserializer(M.saved_k.target).load(M.fit_k)
M.fit_k.mean[...] = 1
M.fit_k.mean = np.ones(3, "<<f|d>>")
M.fit_k.last = M.fit_k.mean
M.fit_k.mean = M.fit_k.last if M.fit_k.last is not None else M.fit_k.mean
M.fit_k.steps = <<num>>
M.fit_k.to_cpu()
M.rule_k.use_cleargrads(False)
M.log_k.clear()
!chainer.config.train = False
!chainer.config.dtype = np.float<<16|32|64>>
=== carried training
class Carry_k(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.<<LSTM(3, 3)|StatefulGRU(3, 3)|StatefulPeepholeLSTM(3, 3)|StatefulZoneoutLSTM(3, 3)>>
        for i, p in enumerate(self.params()):
            p.array[...] = 0.1 * (i + 1)
        self.state = None
        self.losses = []
    def forward(self, x):
        y = self.l(x)
        self.state = y if self.state is None else <<self.state * 0.5 + y|y|F.tanh(self.state + y)>>
        return self.state
carry_k = Carry_k()
---
x = h.reshape(-1, 3).array.astype("f")[:2] if h.size and h.size % 3 == 0 else np.ones((2, 3), "f")
y = carry_k(x)
<<carry_k.losses.append(float(F.sum(y).array))|carry_k.losses.append(y)|pass|carry_k.state = y.array if n == 1 else y>>
<<if n > 2: carry_k.l.reset_state()|carry_k.state.unchain_backward()|pass|if len(carry_k.losses) > 3: carry_k.losses.pop(0)|pass>>
r = y.array * 1
<<h = h * F.cast(F.sum(y), h.dtype)|pass>>
---
M.carry_k.l.reset_state()
M.carry_k.state = None
M.carry_k.state = np.ones((2, 3), "f")
M.carry_k.state = chainer.Variable(np.ones((2, 3), "f"))
M.carry_k.losses.clear()
M.carry_k.l.h = chainer.Variable(np.zeros((2, 3), "f"))
M.carry_k.state is None or M.carry_k.state.unchain_backward()
M.carry_k = copy.deepcopy(M.carry_k)
M.carry_k.l.cleargrads()
M.carry_k.losses[:] = [1.5]
=== shared_memory containers
base_k = np.arange(6, dtype="f")
view_k = base_k[<<::2|:3|3:|2:5|::-2>>]
kept_k = {"v": view_k, "b": base_k}
var_k = chainer.Variable(base_k[:3])
---
<<kept_k["v"] += 1|view_k[0] = n|base_k *= 0.5|var_k.array[1] = 7|base_k[1:4] = view_k|kept_k["v"] = kept_k["v"][::-1]|kept_k["v"][:2] += base_k[:2]|np.add(base_k[1:], base_k[:-1], out=base_k[1:])>>
<<kept_k["b"][2] = view_k[1]|var_k.array[...] = view_k|view_k[...] = view_k[::-1]|pass|a[:2] = view_k[:2]|kept_k["v"] = a>>
r = (base_k.sum(), view_k * 1, kept_k["v"] is view_k, np.shares_memory(kept_k["v"], base_k), <<kept_k["v"]|view_k|base_k[1:]|var_k.array|view_k.copy()>>)
h = h * <<view_k.sum()|F.cast(F.sum(var_k), h.dtype)|base_k[2]>>
---
M.view_k = M.base_k[<<1:4|:3|::2|3:>>]
M.view_k = M.view_k.copy()
M.kept_k["v"] = M.view_k
M.kept_k["v"] = M.base_k[1:4]
M.kept_k["b"] = M.base_k.copy()
M.kept_k["b"] = M.view_k
M.base_k[...] = 1
M.base_k = np.arange(6, dtype="<<f|d>>")
M.var_k.array = M.base_k[3:]
M.var_k.array = M.view_k
M.var_k = chainer.Variable(M.view_k)
M.view_k.flags.writeable = False
=== shared_links links
class Pair_k(chainer.Chain):
    def __init__(self, one, other):
        super().__init__()
        with self.init_scope():
            self.one, self.other = one, other
        self.seen = {}
    def forward(self, x):
        self.seen["n"] = self.seen.get("n", 0) + 1
        return <<self.one(x) + self.other(x)|self.other(self.one(x))|self.one(x) * self.other.W.array.sum()|self.one(x) - self.other.b>>
inner_k = L.Linear(3, 3, initialW=0.1)
pair_k = Pair_k(inner_k, <<inner_k|L.Linear(3, 3, initialW=0.3)>>)
---
y = pair_k(F.cast(h.reshape(-1, 3), "f")) if h.size and h.size % 3 == 0 else None
<<pair_k.one.W.array[0] += 1|pair_k.one.b.array[...] = pair_k.other.b.array + n|pair_k.one, pair_k.other = pair_k.other, pair_k.one|pair_k.other = pair_k.one|pair_k.one.W.array = pair_k.other.W.array * 0.5|pass|pass|inner_k.W.array *= 2>>
if y is not None:
    r = y
    <<h = y|pass>>
r = (r, pair_k.one is pair_k.other, pair_k.one is inner_k, sorted(name for name, _ in pair_k.namedparams()))
---
M.pair_k.other = M.pair_k.one
M.pair_k.other = L.Linear(3, 3, initialW=0.7)
M.pair_k.one = M.inner_k
M.pair_k.other.W = M.pair_k.one.W
M.pair_k.other.W = chainer.Parameter(np.ones((3, 3), "f"))
M.pair_k.other.W.array = M.pair_k.one.W.array
M.pair_k = copy.deepcopy(M.pair_k)
M.pair_k = M.pair_k.copy(mode="<<share|copy|init>>")
M.inner_k = copy.copy(M.inner_k)
M.inner_k.W.array[...] = 0.5
M.inner_k.W.name = "other"
M.inner_k.nobias = True
M.inner_k.b = None
del M.pair_k.other
M.pair_k.seen = {}
M.pair_k.copyparams(M.Pair_k(M.inner_k, M.inner_k))
M.pair_k.addgrads(M.pair_k)
=== own_or_class classes
class Base_k:
    level = <<num>>
    items = []
    table = {"x": 1}
class Own_k(Base_k):
    def more(self):
        <<self.level += 1|self.level = self.level|self.items.append(n_k)|self.items = self.items + [n_k]|self.items += [n_k]|type(self).level += 1|self.table["y"] = self.level|Base_k.level = self.level + 1|self.__class__.items = [self.level]>>
        return self.level, len(self.items), len(self.table)
n_k = 1
own_k, next_k = Own_k(), Own_k()
---
r = (own_k.more(), next_k.more(), "level" in vars(own_k), own_k.items is next_k.items, Base_k.level)
<<use:own_k.level>>
---
M.own_k.level = <<num>>
del M.own_k.level
del M.own_k.items
M.Own_k.level = <<num>>
M.Base_k.level = <<num>>
M.own_k.items = M.next_k.items
M.next_k = M.own_k
M.Base_k.items = [1]
M.Own_k.table = {}
M.next_k.__dict__ = M.own_k.__dict__
M.next_k.__dict__ = dict(M.own_k.__dict__)
M.own_k.__class__ = M.Base_k
M.n_k = <<num>>
=== dict_views containers
table_k = {"a": 1, "b": <<num>>, "c": 3}
keys_k, items_k = table_k.keys(), table_k.items()
---
<<table_k[t] = n|table_k.pop("b", None)|table_k["a"] = table_k.pop("a", 0)|pass|table_k.update({t: 1, "z": n})|table_k["c"] += 1 if "c" in table_k else 0|table_k.popitem() if table_k else 0>>
r = (list(keys_k), list(items_k), list(table_k), next(iter(table_k.values()), None), <<max(table_k, default=0)|keys_k & {"a"}|len(items_k)|("a", 1) in items_k|list(reversed(table_k))>>)
for name, value in <<table_k.items()|items_k|list(items_k)|sorted(items_k)>>:
    if name == t:
        h = h * 2
        <<break|table_k[name] = value|table_k["late"] = 1|pass>>
---
M.table_k["b"] = <<num>>
M.table_k["a"] = M.table_k.pop("a", 0)
M.table_k.pop("a", None)
M.table_k = dict(M.table_k)
M.table_k.clear()
M.table_k = {"c": 1, "a": <<num>>}
M.keys_k = M.table_k.keys()
M.items_k = M.table_k.items()
=== left_early exceptions
state_k = {"n": 0, "x": np.zeros(3, "f"), "log": []}
def early_k(x, n):
    try:
        state_k["n"] += 1
        <<if n > 2: return x * 2, "early"|if n > 2: raise ValueError(n)|state_k["x"][n] = 1|if float(x.array.sum()) > 2: return x, "large"|x = x.reshape(n, -1)|pass>>
        state_k["x"] += 1
        return F.tanh(x), "end"
    except <<ValueError|(ValueError, IndexError)|IndexError|Exception>> as error:
        state_k["log"].append(type(error).__name__)
        <<return x, str(error)|raise|raise RuntimeError("other") from error|pass|x = x * 3>>
    else:
        state_k["log"].append("else")
    finally:
        state_k["x"][0] -= 1
        <<return x * 0.5, "finally"|state_k["log"].append("finally")|pass|state_k["log"] = state_k["log"][-3:]|if n == 1: return x, "one">>
    return x, "after"
---
y, r = early_k(h, n)
r = (r, state_k["n"], state_k["x"].sum(), list(state_k["log"]))
h = y if y.shape == h.shape else h
---
M.state_k["n"] = <<num>>
M.state_k["log"].clear()
M.state_k["x"] = np.zeros(<<3|4|2>>, "<<f|d|i>>")
M.state_k["x"][...] = 2
M.state_k = {"n": 0, "x": np.ones(3, "f"), "log": []}
M.early_k.__defaults__ = (1,)
=== named_results closures
totals_k = {"sum": 0}
def taken_k(x, v=[0], *rest, w=totals_k, **more):
    v[0] += 1
    w["sum"] = w["sum"] + v[0]
    return x * v[0], (total := w["sum"]) + len(rest) + len(more)
def walked_k(values):
    seen = [y := 0, *[(y := y + v) for v in values if (last := v) != 2]]
    return seen, y, last
def counter_k():
    count = <<small>>
    def step(x):
        nonlocal count
        count <<+= 1|*= 2|-= n_k>>
        if count > 5:
            count = 0
        return x * count
    return step
step_k = counter_k()
n_k = 1
---
<<h, r = taken_k(h)|h, r = taken_k(h, *[[n]])|h, r = taken_k(h, w={"sum": n}, z=1)|h, r = taken_k(x=h)>>
r = (r, walked_k([1, 2, n]), totals_k["sum"])
h = step_k(h)
while (m := totals_k["sum"]) > 20:
    totals_k["sum"] = m // 20
---
M.totals_k["sum"] = <<small>>
M.taken_k.__defaults__ = ([<<small>>],)
M.taken_k.__defaults__[0][0] = <<small>>
M.taken_k.__kwdefaults__["w"] = {"sum": <<small>>}
M.step_k = M.counter_k()
M.step_k.__closure__[0].cell_contents = <<num>>
M.n_k = <<num>>
=== kept_iterator closures
numbers_k = [1, 2, <<num>>]
def walk_k():
    total = 0
    for v in numbers_k:
        got = yield total + v
        total += v if got is None else got
iterator_k = walk_k()
source_k = iter(numbers_k)
cycle_k = itertools.cycle([1, 2, 3])
---
<<r = next(iterator_k, None)|r = next(source_k, "end")|r = next(cycle_k)|r = list(itertools.islice(cycle_k, 2))|r = [v for v, _ in zip(source_k, range(1))]|for r in source_k: break|r = list(walk_k())|r = sum(source_k)>>
h = h * (r if isinstance(r, int) and r < 10 else 2)
---
M.iterator_k = M.walk_k()
M.source_k = iter(M.numbers_k)
M.source_k = iter([5, 6])
next(M.source_k, None)
next(M.cycle_k)
M.numbers_k.append(<<num>>)
M.numbers_k[0] = <<num>>
M.cycle_k = itertools.cycle([<<small>>])
=== acting_properties classes
class Acting_k:
    def __init__(self):
        self.reads, self.kept, self.log = 0, <<small>>, []
    @property
    def value(self):
        self.reads += 1
        <<pass|self.log.append(self.kept)|if self.reads > 3: raise AttributeError("no more")|self.kept += 1>>
        return self.kept
    @value.setter
    def value(self, new):
        self.log.append(("set", new))
        <<self.kept = new|self.kept, self.reads = new, 0|if new == 2: raise ValueError("two")|self.kept = max(new, 1)>>
    @value.deleter
    def value(self):
        self.log.clear()
    def __enter__(self):
        self.log.append("in")
        return self
    def __exit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return <<False|kind is ValueError|self.reads % 2 == 1>>
acting_k = Acting_k()
---
<<acting_k.value += 1|acting_k.value = n|del acting_k.value|r = getattr(acting_k, "value", "none")|r = hasattr(acting_k, "value")|pass>>
with acting_k as inside:
    h = h * <<inside.reads|inside.kept>>
    <<inside.value = n|r = inside.value|if n > 2: raise ValueError(n)|pass|inside.kept = n>>
    r = (r, "through")
r = (r, acting_k.reads, len(acting_k.log), acting_k.kept)
---
M.acting_k.kept = <<num>>
M.acting_k.reads = <<small>>
M.acting_k.log.clear()
M.acting_k = M.Acting_k()
M.Acting_k.value = M.Acting_k.value.setter(lambda self, new: self.__dict__.update(kept=7))
M.Acting_k.__exit__ = lambda self, *error: <<True|False>>
M.acting_k = copy.copy(M.acting_k)
'''

#: Pieces for Python 3.10 and later.
MATCHES = r'''
=== matched closures
class Point_k:
    __match_args__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y
ONE_k = 1
kinds_k = {"kind": "point", "at": Point_k(1, <<num>>), "rest": [1, 2, 3]}
def matched_k(v, x):
    match v:
        case Point_k(0, y) | Point_k(y, 0):
            return x * 2, ("axis", y)
        case Point_k(x=a, y=b) if a == b or a == 1:
            v.x = b
            return x + 1, ("diagonal", a)
        case {"kind": str(kind), "at": Point_k() as at, **more}:
            more["new"] = 1
            return x * (1 if at.x == at.y else 2), (kind, len(more))
        case [1 | 2 as first, *others]:
            return x * first, len(others)
        case (int() | float()) as number if number > 1:
            return x * 3, number
        case None | True | False | "a":
            return x, "constant"
        case str():
            return -x, v.upper()
        case _:
            return x * 0.5, "other"
---
h, r = matched_k(<<n|t|kinds_k|kinds_k["at"]|kinds_k["rest"]|(n, t)|None|a|[n, *kinds_k["rest"]]>>, h)
---
M.kinds_k["at"] = M.Point_k(<<0, 1|1, 1|1, 0|2, 3>>)
M.kinds_k["at"].x = <<num>>
M.kinds_k["rest"][0] = <<num>>
M.kinds_k["kind"] = <<3|"other">>
del M.kinds_k["kind"]
M.Point_k.__match_args__ = ("y", "x")
M.Point_k.__match_args__ = ()
M.kinds_k = [2, M.kinds_k]
'''
