"""The networks: ``n`` gives layers by names, and functions.  The layers are made in a first call."""


def inception(n, x):
    h = n.relu(n.conv("stem", x, 3, 192, 3, 2, 1))
    for k in "012":
        one = n.relu(n.conv("a" + k, h, 192, 64, 1))
        three = n.relu(n.conv("c" + k, n.relu(n.conv("b" + k, h, 192, 48, 1)), 48, 64, 3, 1, 1))
        five = n.relu(n.conv("e" + k, n.relu(n.conv("d" + k, h, 192, 16, 1)), 16, 32, 5, 1, 2))
        pooled = n.relu(n.conv("f" + k, n.maximum(h, 3, 1, 1), 192, 32, 1))
        h = n.join([one, three, five, pooled])
    return n.mean(h)


def upscale(n, x):
    h = x = n.conv("stem", x, 3, 64, 3, 1, 1)
    for k in "0123":
        h = h + n.conv("b" + k, n.relu(n.conv("a" + k, h, 64, 64, 3, 1, 1)), 64, 64, 3, 1, 1)
    h = n.to_places(n.conv("up", h + x, 64, 256, 3, 1, 1))
    return n.conv("out", h, 64, 3, 3, 1, 1)


def atrous(n, x):
    h = n.relu(n.norm("first", n.conv("stem", x, 3, 128, 3, 2, 1), 128))
    parts = [n.relu(n.norm("n0", n.conv("c0", h, 128, 64, 1), 64))]
    for rate in (2, 4, 6):
        parts.append(n.relu(n.norm(f"n{rate}", n.conv(f"c{rate}", h, 128, 64, 3, 1, rate, dilate=rate), 64)))
    h = n.relu(n.norm("joined", n.conv("project", n.join(parts), 256, 128, 1), 128))
    return n.conv("out", h, 128, 21, 1)


def gated(n, k, x, channels):
    gate = n.relu(n.conv("squeeze" + k, n.mean(x, keep=True), channels, channels // 4, 1))
    return n.times(x, n.sigmoid(n.conv("excite" + k, gate, channels // 4, channels, 1)))


def ghost(n, x):
    h = n.relu(n.norm("first", n.conv("stem", x, 3, 32, 3, 2, 1), 32))
    for k in "012345":
        own = n.relu(n.norm("n" + k, n.conv("a" + k, h, 32, 48, 1), 48))
        cheap = n.relu(n.norm("m" + k, n.conv("b" + k, own, 48, 48, 3, 1, 1, groups=48), 48))
        w = n.norm("o" + k, n.conv("c" + k, gated(n, k, n.join([own, cheap]), 96), 96, 16, 1), 16)
        h = h + n.join([w, n.norm("p" + k, n.conv("d" + k, w, 16, 16, 3, 1, 1, groups=16), 16)])
    return n.mean(h)


def csp(n, x):
    def layer(k, x, *sizes):
        return n.swish(n.norm("norm" + k, n.conv("conv" + k, x, *sizes), sizes[1]))

    h = layer("c", layer("b", layer("a", x, 3, 32, 3, 2, 1), 32, 64, 3, 2, 1), 64, 64, 1)
    parts = list(n.split(h, 2))
    for k in "012":
        parts.append(parts[-1] + layer("y" + k, layer("x" + k, parts[-1], 32, 32, 3, 1, 1), 32, 32, 3, 1, 1))
    pyramid = [layer("e", layer("d", n.join(parts), 160, 64, 1), 64, 32, 1)]
    for _ in range(3):
        pyramid.append(n.maximum(pyramid[-1], 5, 1, 2))
    return n.conv("out", n.twice(layer("f", n.join(pyramid), 128, 64, 1)), 64, 18, 1)


#: Channels in, expanded, and out, size and stride of the windows, and whether channels are gated.
STAGES = ((16, 64, 24, 3, 2, False), (24, 72, 24, 3, 1, False), (24, 72, 40, 5, 2, True), (40, 120, 40, 5, 1, True),
          (40, 240, 80, 3, 2, False), (80, 200, 80, 3, 1, False), (80, 480, 112, 3, 1, True))


def mobile(n, x):
    h = n.hard_swish(n.norm("first", n.conv("stem", x, 3, 16, 3, 2, 1), 16))
    for k, (before, wide, after, size, stride, is_gated) in enumerate(STAGES):
        k = str(k)
        w = n.hard_swish(n.norm("n" + k, n.conv("a" + k, h, before, wide, 1), wide))
        w = n.hard_swish(n.norm("m" + k, n.conv("b" + k, w, wide, wide, size, stride, size // 2, groups=wide), wide))
        w = n.norm("o" + k, n.conv("c" + k, gated(n, k, w, wide) if is_gated else w, wide, after, 1), after)
        h = h + w if stride == 1 and before == after else w
    return n.mean(h)


def res2(n, x):
    h = n.relu(n.norm("first", n.conv("stem", x, 3, 64, 3, 2, 1), 64))
    for k in "012":
        parts = list(n.split(n.relu(n.norm("n" + k, n.conv("a" + k, h, 64, 64, 1), 64)), 4))
        for j in (1, 2, 3):
            y = parts[j] if j == 1 else parts[j] + parts[j - 1]
            parts[j] = n.relu(n.norm(f"m{k}{j}", n.conv(f"c{k}{j}", y, 16, 16, 3, 1, 1), 16))
        h = n.relu(h + n.norm("o" + k, n.conv("d" + k, n.join(parts), 64, 64, 1), 64))
    return n.mean(h)


def wave(n, x):
    h, skipped = n.along("stem", x, 64, 64, 1), 0
    for k in range(8):
        before = n.pad(h, 2 ** (k + 1))
        gate = n.tanh(n.along(f"t{k}", before, 64, 64, 3, 2 ** k)) * n.sigmoid(n.along(f"s{k}", before, 64, 64, 3, 2 ** k))
        out = n.along(f"o{k}", gate, 64, 64, 1)
        skipped, h = skipped + out, h + out
    return n.along("out", n.relu(skipped), 64, 32, 1)


def points(n, x):
    h = x
    for k, (before, after) in enumerate(((3, 64), (64, 64), (64, 128), (128, 512))):
        h = n.relu(n.norm_along(f"n{k}", n.along(f"c{k}", h, before, after, 1), after))
    return n.linear("out", n.relu(n.linear("wide", n.largest(h), 512, 256)), 256, 40)


def chars(n, x):
    h = n.maximum_along(n.relu(n.along("a", x, 70, 128, 7)), 3)
    h = n.maximum_along(n.relu(n.along("b", h, 128, 128, 7)), 3)
    return n.linear("out", n.largest(n.relu(n.along("c", h, 128, 128, 3))), 128, 10)


def windows(n, x):
    count, rows, columns, units = x.shape
    for k in "01":
        y = n.turned(n.layer_norm("n" + k, x, units).reshape(count, 2, 8, 2, 8, units), 0, 1, 3, 2, 4, 5).reshape(-1, units)
        parts = n.turned(n.linear("qkv" + k, y, units, 3 * units).reshape(4 * count, 64, 3, 3, 32), 2, 0, 3, 1, 4)
        weights = n.softmax(n.matmul(parts[0], n.turned(parts[1], 0, 1, 3, 2)) * 32 ** -0.5)
        y = n.linear("p" + k, n.turned(n.matmul(weights, parts[2]), 0, 2, 1, 3).reshape(-1, units), units, units)
        x = x + n.turned(y.reshape(count, 2, 2, 8, 8, units), 0, 1, 3, 2, 4, 5).reshape(count, rows, columns, units)
        y = n.linear("a" + k, n.layer_norm("m" + k, x, units).reshape(-1, units), units, 4 * units)
        x = x + n.linear("b" + k, n.gelu(y), 4 * units, units).reshape(count, rows, columns, units)
    return x


def conformer(n, x):
    count, length, units = x.shape
    for k in "01":
        y = n.swish(n.linear("a" + k, n.layer_norm("n" + k, x, units).reshape(-1, units), units, 4 * units))
        x = x + n.linear("b" + k, y, 4 * units, units).reshape(count, length, units) * 0.5
        y, gate = n.split(n.along("c" + k, n.turned(n.layer_norm("m" + k, x, units), 0, 2, 1), units, 2 * units, 1), 2)
        y = n.along("d" + k, y * n.sigmoid(gate), units, units, 31, 1, 15, groups=units)
        y = n.swish(n.norm_along("o" + k, y, units))
        x = x + n.turned(n.along("e" + k, y, units, units, 1), 0, 2, 1)
    return x


NETWORKS = {
    "Inception": inception, "Upscale": upscale, "Atrous": atrous, "Ghost": ghost, "CSP": csp, "MobileV3": mobile, "Res2": res2,
    "Wave": wave, "Points": points, "Chars": chars, "Windows": windows, "Conformer": conformer}
