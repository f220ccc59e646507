"""The kernels of native code on other CPUs: each is compiled for one, and runs beside plain loops of C.

    python -m tests.kernels_on_cpus                                   # everything that this machine can do
    python -m tests.kernels_on_cpus --kinds x86-64-v3,aarch64 --compilers gcc --kernels product --types float --speed

Code for aarch64 is made by a cross compiler (Debian: gcc-aarch64-linux-gnu) and runs in an emulator (qemu-user).  ``--speed``: the
GFLOP/s of each product of matrices, on CPUs that are not emulated.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from dy2static import config
from dy2static.native import channel_blocks, compiler, convolutions, cpus, products

KINDS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
COMPILERS = ("gcc", "clang")
KERNELS = ("product", "windows", "depthwise", "blocks", "math")
TYPES = {"float": "f32", "double": "f64"}
EMULATOR, SYSROOT = "qemu-aarch64", "/usr/aarch64-linux-gnu"

MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double worst;

static void compare(double found, double wanted, double size)
{
    const double off = fabs(found - wanted) / size;
    if (!(off <= worst))
        worst = off;
}

static DY_T *numbers(int64_t count)
{
    DY_T *made = malloc((count + 1) * sizeof(DY_T));
    for (int64_t i = 0; i < count; i++)
        made[i] = rand() / (double)RAND_MAX - 0.5;
    return made;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
"""

CHECKS = {"product": """
static void check(void)
{
    static const int64_t shapes[][3] = {{1, 200, 70}, {5, 1, 33}, {3, 7, 2}, {33, 65, 129}, {70, 40, 400}, {101, 410, 500}, {200, 35, 20}};
    for (unsigned s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
        for (int trans = 0; trans < 4; trans++) {
            const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            const int64_t row_a = trans & 1 ? 1 : k, step_a = trans & 1 ? m : 1, row_b = trans & 2 ? 1 : n, step_b = trans & 2 ? k : 1;
            DY_T *a = numbers(m * k), *b = numbers(k * n), *c = numbers(m * n), *before = numbers(m * n);
            memcpy(before, c, m * n * sizeof(DY_T));
            product(trans & 1, trans >> 1, m, n, k, 2, a, trans & 1 ? m : k, b, trans & 2 ? k : n, s % 2, c, n);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double sum = s % 2 ? before[i * n + j] : 0;
                    for (int64_t l = 0; l < k; l++)
                        sum += 2.0 * a[i * row_a + l * step_a] * b[l * row_b + j * step_b];
                    compare(c[i * n + j], sum, k);
                }
            free(a), free(b), free(c), free(before);
        }
}

static void speed(void)
{
    const int64_t n = 512;
    DY_T *a = numbers(n * n), *b = numbers(n * n), *c = numbers(n * n);
    double best = 1e9;
    for (int turn = 0; turn < 20; turn++) {
        const double begin = seconds();
        product(0, 0, n, n, n, 1, a, n, b, n, 0, c, n);
        const double took = seconds() - begin;
        best = took < best ? took : best;
    }
    printf("%.1f GFLOP/s  ", 2e-9 * n * n * n / best);
}
""", "windows": """
static int64_t at(const dy_windows *w, int64_t image, int64_t channel, int64_t i, int64_t j)
{
    return ((image * w->groups * w->in + channel) * w->image[1] + i) * w->image[2] + j;
}

static void check(void)
{
    static const dy_windows all[] = {
        {2, 1, 3, 5, {1, 6, 7}, {1, 3, 3}, {1, 6, 7}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
        {2, 1, 17, 33, {1, 9, 8}, {1, 3, 3}, {1, 5, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
        {3, 2, 7, 20, {1, 10, 14}, {1, 4, 4}, {1, 5, 7}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
        {3, 2, 4, 6, {1, 5, 5}, {1, 1, 1}, {1, 5, 5}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
        {2, 20, 1, 1, {1, 14, 14}, {1, 3, 3}, {1, 14, 14}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
        {3, 2, 3, 20, {1, 13, 20}, {1, 4, 6}, {1, 3, 3}, {1, 4, 7}, {0, 0, 0}, {1, 1, 1}},
        {1, 1, 3, 4, {1, 9, 11}, {1, 3, 3}, {1, 9, 7}, {1, 1, 1}, {0, 2, 1}, {1, 2, 3}}};
    for (unsigned s = 0; s < sizeof(all) / sizeof(*all) * (DY_PANELS + 1); s++) {      /* with each algorithm, as far as it is for them */
        dy_windows own = all[s / (DY_PANELS + 1)];
        const dy_windows *const w = &own;
        own.algorithm = s % (DY_PANELS + 1);
        if (!TAKES(w))
            continue;
        const int64_t outs = w->groups * w->out, taps = w->kernel[1] * w->kernel[2], spots = w->spots[1] * w->spots[2];
        const int64_t xs = w->batch * w->groups * w->in * w->image[1] * w->image[2], ys = w->batch * outs * spots, ws = outs * w->in * taps;
        DY_T *x = numbers(xs), *f = numbers(ws), *g = numbers(ys), *y = numbers(ys), *gx = numbers(xs), *gf = numbers(ws);
        double *ry = calloc(ys, 8), *rx = calloc(xs, 8), *rf = calloc(ws, 8);
        if (shared_forward(w, x, f, y, 0) || shared_transposed(w, g, f, gx, 0) || shared_grad_weight(w, x, g, gf))
            worst = INFINITY;
        for (int64_t b = 0; b < w->batch; b++)
            for (int64_t o = 0; o < outs; o++)
                for (int64_t spot = 0; spot < spots; spot++)
                    for (int64_t c = 0; c < w->in; c++)
                        for (int64_t tap = 0; tap < taps; tap++) {
                            const int64_t i = spot / w->spots[2] * w->stride[1] + tap / w->kernel[2] * w->dilate[1] - w->pad[1];
                            const int64_t j = spot % w->spots[2] * w->stride[2] + tap % w->kernel[2] * w->dilate[2] - w->pad[2];
                            if (i < 0 || j < 0 || i >= w->image[1] || j >= w->image[2])
                                continue;
                            const int64_t p = at(w, b, o / w->out * w->in + c, i, j), q = (b * outs + o) * spots + spot;
                            const int64_t r = (o * w->in + c) * taps + tap;
                            ry[q] += (double)x[p] * f[r];
                            rx[p] += (double)g[q] * f[r];
                            rf[r] += (double)x[p] * g[q];
                        }
        for (int64_t i = 0; i < ys; i++)
            compare(y[i], ry[i], w->in * taps);
        for (int64_t i = 0; i < xs; i++)
            compare(gx[i], rx[i], w->out * taps);
        for (int64_t i = 0; i < ws; i++)
            compare(gf[i], rf[i], w->batch * spots);
        free(x), free(f), free(g), free(y), free(gx), free(gf), free(ry), free(rx), free(rf);
    }
}
static void speed(void) {}
""", "blocks": """
static void check(void)
{
    static const dy_blocks all[] = {
        {2, 32, 48, 1, {9, 11}, {3, 3}, {9, 11}, {1, 1}, {1, 1}, {1, 1}, 0, 1, INFINITY},
        {1, 16, 72, 1, {24, 24}, {3, 3}, {24, 24}, {1, 1}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {2, 52, 19, 1, {8, 14}, {1, 1}, {8, 14}, {1, 1}, {0, 0}, {1, 1}, 0, 1, 0.25},
        {3, 48, 21, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 1, 0.5},
        {1, 140, 24, 1, {9, 27}, {3, 3}, {5, 14}, {2, 2}, {1, 1}, {1, 1}, 0, 1, INFINITY},
        {2, 32, 32, 1, {13, 15}, {3, 3}, {7, 8}, {2, 2}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {1, 32, 32, 1, {15, 14}, {3, 3}, {8, 7}, {2, 2}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {1, 64, 32, 2, {12, 13}, {3, 3}, {12, 13}, {1, 1}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {2, 32, 32, 8, {7, 9}, {3, 2}, {4, 8}, {2, 1}, {1, 0}, {1, 1}, 0, 1, INFINITY},
        {1, 32, 32, 4, {9, 31}, {3, 3}, {9, 31}, {1, 1}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {1, 32, 32, 4, {9, 8}, {5, 5}, {9, 8}, {1, 1}, {2, 2}, {1, 1}, 0, 0, INFINITY},
        {1, 32, 32, 8, {9, 12}, {3, 3}, {5, 6}, {2, 2}, {1, 1}, {1, 1}, 0, 1, INFINITY},
        {2, 40, 40, 40, {9, 8}, {3, 3}, {9, 8}, {1, 1}, {1, 1}, {1, 1}, 0, 0, INFINITY},
        {2, 24, 24, 24, {8, 11}, {3, 3}, {4, 6}, {2, 2}, {1, 1}, {1, 1}, 0, 1, 0.5},
        {1, 32, 32, 32, {5, 6}, {3, 3}, {3, 3}, {1, 2}, {0, 1}, {1, 1}, 0, 0, INFINITY},
        {1, 16, 16, 16, {1, 3}, {3, 3}, {1, 3}, {1, 1}, {1, 1}, {1, 1}, 0, 1, INFINITY},
        {1, 32, 32, 32, {12, 11}, {3, 3}, {5, 9}, {2, 1}, {1, 1}, {2, 2}, 0, 1, 0.5}};
    for (unsigned s = 0; s < sizeof(all) / sizeof(*all) * (DY_BLOCKS_GROUPED + 1); s++) {
        dy_blocks own = all[s / (DY_BLOCKS_GROUPED + 1)];
        const dy_blocks *const w = &own;
        own.algorithm = s % (DY_BLOCKS_GROUPED + 1);
        const int64_t taps = w->kernel[0] * w->kernel[1], spots = w->spots[0] * w->spots[1], places = w->image[0] * w->image[1];
        const int64_t in = w->in / w->groups, out = w->out / w->groups;
        float *x = numbers(w->batch * w->in * places), *f = numbers(w->out * in * taps), *y = numbers(w->batch * w->out * spots);
        float *blocked = aligned_alloc(64, w->batch * in_whole(w->in) * places * 4);
        float *made = aligned_alloc(64, w->batch * in_whole(w->out) * spots * 4);
        float *scale = numbers(w->out), *shift = numbers(w->out);
        blocks_of(w->batch, w->in, places, x, blocked);
        const int is_small = (own.algorithm == DY_BLOCKS_BY_RULES || own.algorithm == DY_BLOCKS_GROUPED) && takes(w);
        dy_blocks_function *const function = w->groups == w->in ? blocks_depthwise : is_small ? blocks_groups : any_conv;
        if (function(w, blocked, f, scale, shift, 0, made))
            worst = INFINITY;
        blocks_back(w->batch, w->out, spots, made, y);
        for (int64_t b = 0; b < w->batch; b++)
            for (int64_t o = 0; o < w->out; o++)
                for (int64_t spot = 0; spot < spots; spot++) {
                    double sum = 0;
                    for (int64_t c = 0; c < in; c++)
                        for (int64_t tap = 0; tap < taps; tap++) {
                            const int64_t from = b * w->in + o / out * in + c;
                            const int64_t i = spot / w->spots[1] * w->stride[0] + tap / w->kernel[1] * w->dilate[0] - w->pad[0];
                            const int64_t j = spot % w->spots[1] * w->stride[1] + tap % w->kernel[1] * w->dilate[1] - w->pad[1];
                            if (i >= 0 && j >= 0 && i < w->image[0] && j < w->image[1])
                                sum += (double)x[(from * w->image[0] + i) * w->image[1] + j] * f[(o * in + c) * taps + tap];
                        }
                    sum = sum * scale[o] + shift[o];
                    sum = w->relu && sum < 0 ? 0 : sum;
                    compare(y[(b * w->out + o) * spots + spot], sum > w->cap ? w->cap : sum, in * taps);
                }
        free(x), free(f), free(y), free(blocked), free(made), free(scale), free(shift);
    }
}
static void speed(void) {}
""", "math": """
static void check(void)
{
    static const double points[] = {-80, -20, -3.5, -1, -1e-3, -1e-30, 0, 1e-30, 1e-3, 0.5, 1, 2, 3.5, 20, 80};
    for (unsigned s = 0; s < sizeof(points) / sizeof(*points); s++) {
        const DY_T x = points[s];
        compare(exp_DY(x), exp(x), exp(x));
        compare(tanh_DY(x), tanh(x), fabs(tanh(x)) + 1e-300);
        compare(sin_DY(x), sin(x), 1);
        compare(cos_DY(x), cos(x), 1);
        compare(erf_DY(x), erf(x), fabs(erf(x)) + 1e-300);
        if (x > 0)
            compare(log_DY(x), log(x), fabs(log(x)) + 1);
    }
}
static void speed(void) {}
"""}


def source_of(kernel, type, speed=False):
    """The C text of a program that prints how far the kernel is off, in units of the last place, and ends with 0 if that is little."""
    name = TYPES[type]
    kernels = {"product": lambda: products.text(name), "blocks": channel_blocks.everything,
               "windows": lambda: f"{convolutions.text(name)}#define TAKES(w) 1\n",
               "depthwise": lambda: f"{convolutions.text('depthwise_' + name)}#define TAKES(w) is_depthwise(w)\n",
               "math": lambda: f'#include "dy2static_math.h"\n#define DY_T {type}\n'
               + "".join(f"#define {f}_DY {f}_{name}\n" for f in ("exp", "tanh", "sin", "cos", "erf", "log"))}
    small = "0x1p-24" if type == "float" else "0x1p-53"
    check = CHECKS["windows" if kernel == "depthwise" else kernel]
    return (kernels[kernel]() + MAIN + check + f"int main(void) {{ check(); {'speed();' if speed else ''}"
            f' printf("%.2f\\n", worst / {small}); return !(worst < 16 * {small}); }}\n')


def command_of(kind, maker, flags=("-O2",)):
    """The command of a compiler for a kind of CPU, and what runs the program; the first is a reason where that is impossible."""
    if kind == "aarch64":
        command = ["aarch64-linux-gnu-gcc"] if maker == "gcc" else ["clang", "--target=aarch64-linux-gnu"]
        needed, runner, march = [command[0], "aarch64-linux-gnu-gcc", EMULATOR], [EMULATOR, "-L", SYSROOT], "armv8-a"
    else:
        command, needed, runner, march = [maker], [maker], [], kind
        with config.MARCH.set(kind):
            lacking = cpus.lacking()
        if lacking:
            return f"this CPU has no {lacking}", []
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]}", []
    usual = [flag for flag in compiler.FLAGS if flag not in ("-shared", "-fPIC")]
    return [*command, *usual, f"-march={march}", "-ffp-contract=fast", *flags, "-I", str(compiler.INCLUDE), "-x", "c", "-"], runner


def run(kind, maker, kernel, type, flags=("-O2",), speed=False):
    """Whether the kernel computes what it is to compute, and what there is to say of it.  Raises LookupError where nothing runs here."""
    command, runner = command_of(kind, maker, flags)
    if isinstance(command, str):
        raise LookupError(command)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel")
        made = subprocess.run([*command, "-o", path, "-lm", "-pthread"], input=source_of(kernel, type, speed and not runner),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        if made.returncode:
            return False, made.stdout[:2000]
        done = subprocess.run([*runner, path], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    return done.returncode == 0, done.stdout.strip() or f"ended with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, known in (("kinds", KINDS), ("compilers", COMPILERS), ("kernels", KERNELS), ("types", tuple(TYPES))):
        parser.add_argument(f"--{name}", default=",".join(known))
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for kind in options.kinds.split(","):
        for maker in options.compilers.split(","):
            for kernel in options.kernels.split(","):
                for type in options.types.split(",") if kernel != "blocks" else ["float"]:
                    try:
                        right, words = run(kind, maker, kernel, type, speed=options.speed)
                    except LookupError as reason:
                        right, words = True, f"left out: {reason}"
                    wrong += not right
                    print(f"{kind:<10} {maker:<6} {kernel:<8} {type:<7} {'' if right else 'WRONG '}{words}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
