"""Pieces of session programs (`session_pieces` describes the form): functions, closures, globals and containers."""

TEXT = r'''
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
'''
