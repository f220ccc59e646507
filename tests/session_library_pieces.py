"""Pieces of session programs (`session_pieces` describes the form): texts, exceptions, and what Chainer and other libraries do."""

TEXT = r'''
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
