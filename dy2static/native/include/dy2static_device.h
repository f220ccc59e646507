/* What generated kernels for GPUs call besides the functions of one element: C's types, and reductions of a block.
 *
 * For NVRTC and nvcc, and for compilers on the processor that give CUDA's words meanings of their own (tests/gpu/emulate.h): these define
 * __CUDACC__, DY_SHARED and the headers of C themselves.
 */
#ifndef DY2STATIC_DEVICE_H
#define DY2STATIC_DEVICE_H

#ifdef __CUDACC_RTC__
/* NVRTC has no headers of C. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define INT8_C(x) x
#define INT16_C(x) x
#define INT32_C(x) x
#define INT64_C(x) x##LL
#define UINT8_C(x) x##u
#define UINT16_C(x) x##u
#define UINT32_C(x) x##u
#define UINT64_C(x) x##ull
#define DBL_MAX 0x1.fffffffffffffp+1023
#define FLT_MAX 0x1.fffffep+127f
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define isgreater(a, b) ((a) > (b))
#define isgreaterequal(a, b) ((a) >= (b))
#define isless(a, b) ((a) < (b))
#define islessequal(a, b) ((a) <= (b))
#endif

#ifndef DY_SHARED
/* Memory of a block.  Nothing is in it. */
#define DY_SHARED(T, name, count) __shared__ T name[count]
#endif

/* The words of GNU C in dy2static_math.h. */
#define D2S_FUNCTION static __device__ __forceinline__
#define D2S_RARE static __device__
#define __builtin_sqrt sqrt
#define __builtin_sqrtf sqrtf
#define __builtin_fabs fabs
#define __builtin_fabsf fabsf
#define __builtin_fma fma
#define __builtin_fmaf fmaf
#ifndef __FP_FAST_FMA
#define __FP_FAST_FMA 1
#define __FP_FAST_FMAF 1
#endif

/* float16 in memory.  Numbers are computed in float, and rounded to the nearest half, ties to even.  Ints that float cannot hold
 * are infinite there anyhow. */
#ifndef DY2STATIC_EMULATED_H
static __device__ __forceinline__ uint16_t dy_half_bits(float x) {
    uint16_t bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
static __device__ __forceinline__ uint16_t dy_half_bits(double x) {
    uint16_t bits; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); return bits; }
static __device__ __forceinline__ float dy_of_half_bits(uint16_t bits) {
    float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
#endif

struct dy_half {
    uint16_t bits;
    dy_half() = default;
    template <class T> __device__ dy_half(T x) : bits(dy_half_bits((float)x)) {}
    __device__ dy_half(double x) : bits(dy_half_bits(x)) {}
    __device__ operator float() const { return dy_of_half_bits(bits); }
};

/* A number of any type, rounded to float16. */
template <class T> static __device__ __forceinline__ float dy_rounded(T x) { return dy_half(x); }

/* What sizes that only the run knows are computed with, as on the host. */
template <class A, class B> static __device__ __forceinline__ auto dy_larger(A a, B b) -> decltype(a + b) { return a > b ? a : b; }
template <class A, class B> static __device__ __forceinline__ auto dy_floor_divide(A a, B b) -> decltype(a + b)
{
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

/* N elements that stand side by side, in loads of up to 16 bytes where they are aligned.  left: how many there are, at
 * least one; others get the number of the first. */
template <int bytes> struct alignas(bytes) dy_words { uint32_t word[bytes / 4]; };
template <> struct dy_words<2> { uint16_t word[1]; };
template <class T, int N> struct dy_vector {
    static const int bytes = N * (int)sizeof(T) < 16 ? N * (int)sizeof(T) : 16;
    static __device__ __forceinline__ bool fits(const T *at, int left) { return left >= N && (uint64_t)at % bytes == 0; }
};

template <class T, int N> static __device__ __forceinline__ void dy_load(T (&to)[N], const T *from, int left)
{
    typedef dy_words<dy_vector<T, N>::bytes> words;
    if (dy_vector<T, N>::fits(from, left)) {
        #pragma unroll
        for (int k = 0; k < N * (int)sizeof(T) / (int)sizeof(words); ++k) {
            const words w = ((const words *)from)[k];
            memcpy((char *)to + k * sizeof(words), &w, sizeof(words));
        }
    } else {
        #pragma unroll
        for (int k = 0; k < N; ++k)
            to[k] = from[k < left ? k : 0];
    }
}

template <class T, int N> static __device__ __forceinline__ void dy_store(T *to, const T (&from)[N], int left)
{
    typedef dy_words<dy_vector<T, N>::bytes> words;
    if (dy_vector<T, N>::fits(to, left)) {
        #pragma unroll
        for (int k = 0; k < N * (int)sizeof(T) / (int)sizeof(words); ++k) {
            words w;
            memcpy(&w, (const char *)from + k * sizeof(words), sizeof(words));
            ((words *)to)[k] = w;
        }
    } else {
        #pragma unroll
        for (int k = 0; k < N; ++k)
            if (k < left)
                to[k] = from[k];
    }
}

#define DY_WARP 32
#define DY_ALL_LANES 0xffffffffu

/* An index that wraps around a size, in the type of the size. */
template <class I, class T> static __device__ __forceinline__ I dy_wrapped(T index, I size)
{
    const int64_t at = (int64_t)index;
    if (at >= 0 && at < size)
        return (I)at;
    return (I)(at % size < 0 ? at % size + size : at % size);
}

/* The operations of reductions; NaN wins in max and min, as in NumPy. */
struct dy_sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
struct dy_prod { template <class T> static __device__ T of(T a, T b) { return a * b; } };
struct dy_any { template <class T> static __device__ T of(T a, T b) { return a | b; } };
struct dy_all { template <class T> static __device__ T of(T a, T b) { return a & b; } };
struct dy_max { template <class T> static __device__ T of(T a, T b) { return (b > a) | (b != b) ? b : a; } };
struct dy_min { template <class T> static __device__ T of(T a, T b) { return (b < a) | (b != b) ? b : a; } };

/* Both of two numbers, in the type of the first. */
template <class Op, class T, class U> static __device__ T dy_combined(T a, U b) { return Op::of(a, (T)b); }

/* The reduction of one number of each thread of a warp: the same tree in every run; all threads get the result. */
template <class Op, class T> static __device__ T dy_reduced_in_warp(T x, T)
{
    for (int by = DY_WARP / 2; by; by >>= 1)
        x = Op::of(x, (T)__shfl_xor_sync(DY_ALL_LANES, x, by));         /* of a short type CUDA makes an int */
    return x;
}

/* The same for a block.  start: what changes nothing.
 * All threads of the block come here; blockDim.x is a multiple of 32, at most 1024. */
template <class Op, class T> static __device__ T dy_reduced(T x, T start)
{
    DY_SHARED(T, part, DY_WARP);
    x = dy_reduced_in_warp<Op>(x, start);
    if (blockDim.x == DY_WARP)
        return x;
    if (threadIdx.x % DY_WARP == 0)
        part[threadIdx.x / DY_WARP] = x;
    __syncthreads();
    x = threadIdx.x % DY_WARP < blockDim.x / DY_WARP ? part[threadIdx.x % DY_WARP] : start;
    x = dy_reduced_in_warp<Op>(x, start);
    __syncthreads();                                    /* part is used again by the next reduction */
    return x;
}

#ifndef DY2STATIC_EMULATED_H
/* A barrier of one team of a block: of `count` threads that stand side by side, a multiple of 32.  There are at most 15 teams. */
static __device__ __forceinline__ void dy_team_barrier(int team, int count)
{
    asm volatile("bar.sync %0, %1;" : : "r"(team + 1), "r"(count) : "memory");
}
#endif

/* As dy_reduced, for each team of `count` threads of a block. */
template <class Op, int count, class T> static __device__ T dy_reduced_in_team(T x, T start)
{
    DY_SHARED(T, part, DY_WARP);
    const int team = threadIdx.x / count, lane = threadIdx.x % DY_WARP;
    x = dy_reduced_in_warp<Op>(x, start);
    if (count == DY_WARP)
        return x;
    if (lane == 0)
        part[threadIdx.x / DY_WARP] = x;
    dy_team_barrier(team, count);
    x = lane < count / DY_WARP ? part[team * (count / DY_WARP) + lane] : start;
    x = dy_reduced_in_warp<Op>(x, start);
    dy_team_barrier(team, count);                       /* part is used again by the next reduction */
    return x;
}

#define DY_MOST_THREADS 512

/* Numbers of the first team of a block become the reductions of those of all teams, in the order of the teams.
 * All threads of the block come here, at most DY_MOST_THREADS.  count: threads of a team. */
template <class Op, int count, int N, class T> static __device__ void dy_reduce_over_teams(T (&x)[N])
{
    DY_SHARED(T, part, DY_MOST_THREADS * N);
    #pragma unroll
    for (int k = 0; k < N; ++k)
        part[k * DY_MOST_THREADS + threadIdx.x] = x[k];
    __syncthreads();
    if (threadIdx.x < count)
        for (int at = threadIdx.x + count; at < blockDim.x; at += count) {
            #pragma unroll
            for (int k = 0; k < N; ++k)
                x[k] = Op::of(x[k], part[k * DY_MOST_THREADS + at]);
        }
    __syncthreads();                                    /* part is used again by the next reduction */
}

/* Whether an element comes before another one: NaN first, then what is larger, or smaller, then what stands in front.
 * Elements at INT64_MAX are none. */
template <bool least, class T> static __device__ bool dy_is_before(T a, int64_t at_a, T b, int64_t at_b)
{
    if (at_a == INT64_MAX || at_b == INT64_MAX)
        return at_a < at_b;
    if ((a != a) != (b != b))
        return a != a;
    return a == b || a != a ? at_a < at_b : least ? a < b : a > b;
}

/* Where the first of the elements of all threads of a block is, each of which is at a place of its own.  blockDim.x is as above. */
template <bool least, class T> static __device__ int64_t dy_place(T x, int64_t at)
{
    DY_SHARED(T, elements, DY_WARP);
    DY_SHARED(int64_t, places, DY_WARP);
    for (int round = 0; round < 2; ++round) {
        for (int by = DY_WARP / 2; by; by >>= 1) {
            const T other = (T)__shfl_xor_sync(DY_ALL_LANES, x, by);
            const int64_t there = (int64_t)__shfl_xor_sync(DY_ALL_LANES, at, by);
            if (dy_is_before<least>(other, there, x, at)) {
                x = other;
                at = there;
            }
        }
        if (round || blockDim.x == DY_WARP)
            break;
        if (threadIdx.x % DY_WARP == 0) {
            elements[threadIdx.x / DY_WARP] = x;
            places[threadIdx.x / DY_WARP] = at;
        }
        __syncthreads();
        const bool is_one = threadIdx.x % DY_WARP < blockDim.x / DY_WARP;
        x = is_one ? elements[threadIdx.x % DY_WARP] : (T)0;
        at = is_one ? places[threadIdx.x % DY_WARP] : INT64_MAX;
    }
    return at;
}

/* The same for threads of a block that have the same column, threadIdx.x % columns; columns is a power of two, as blockDim.x is, which
 * is at most 256. */
template <class Op, class T> static __device__ T dy_reduced_in_columns(T x, int columns)
{
    DY_SHARED(T, part, 256);
    part[threadIdx.x] = x;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= columns; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = Op::of(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    x = part[threadIdx.x % columns];
    __syncthreads();                                    /* part is used again by the next reduction */
    return x;
}

/* For each thread of a block the reduction of the numbers up to its own; all: that of the whole block.  blockDim.x is as above. */
template <class Op, class T> static __device__ T dy_scanned(T x, T start, T &all)
{
    DY_SHARED(T, part, DY_WARP);
    const unsigned lane = threadIdx.x % DY_WARP, warp = threadIdx.x / DY_WARP;
    for (unsigned by = 1; by < DY_WARP; by *= 2) {
        const T other = (T)__shfl_up_sync(DY_ALL_LANES, x, by);
        if (lane >= by)
            x = Op::of(other, x);
    }
    if (lane == DY_WARP - 1)
        part[warp] = x;
    __syncthreads();
    T before = all = start;
    for (unsigned w = 0; w < blockDim.x / DY_WARP; ++w) {
        if (w < warp)
            before = Op::of(before, part[w]);
        all = Op::of(all, part[w]);
    }
    __syncthreads();                                    /* part is used again by the next scan */
    return Op::of(before, x);
}

/* How many items each thread of a block tests in a tile: bits for 8 warps are words for the lanes of one. */
#define DY_TESTED 4

/* Whether an item from a number on, before another one, passes a test.  All threads of the block come here and get the same;
 * blockDim.x is a multiple of 32, at most 256. */
template <class I, class Test> static __device__ bool dy_is_among(I begin, I end, Test test)
{
    for (I first = begin; first < end; first += DY_TESTED * blockDim.x) {
        bool found = false;
        #pragma unroll
        for (int t = 0; t < DY_TESTED; ++t) {
            const I n = first + t * blockDim.x + threadIdx.x;
            found |= n < end && test(n);
        }
        if (__syncthreads_or(found))
            return true;
    }
    return false;
}

/* Add to the sums of each thread the items in such a range that pass a test, in their order.  Threads have columns that are
 * blockDim.x apart, the first at `column`.  item: a column of an item.  U: how many items are loaded before the first is added. */
template <int U, int J, class I, class T, class Test, class Item> static __device__ void dy_add_items(
    T (&sums)[J], I begin, I end, I column, I columns, Test test, Item item)
{
    DY_SHARED(unsigned, masks, DY_WARP);
    const int lane = threadIdx.x % DY_WARP, warp = threadIdx.x / DY_WARP, warps = blockDim.x / DY_WARP;
    for (I first = begin; first < end; first += DY_TESTED * blockDim.x) {
        bool found[DY_TESTED], is_any = false;
        #pragma unroll
        for (int t = 0; t < DY_TESTED; ++t) {
            const I n = first + t * blockDim.x + threadIdx.x;
            found[t] = n < end && test(n);
            is_any |= found[t];
        }
        if (!__syncthreads_or(is_any))                      /* all have read masks by now */
            continue;
        #pragma unroll
        for (int t = 0; t < DY_TESTED; ++t) {
            const unsigned mask = __ballot_sync(DY_ALL_LANES, found[t]);
            if (lane == 0)
                masks[t * warps + warp] = mask;
        }
        __syncthreads();
        const unsigned mine = lane < DY_TESTED * warps ? masks[lane] : 0;
        for (unsigned words = __ballot_sync(DY_ALL_LANES, mine != 0); words; words &= words - 1) {
            const int word = __ffs(words) - 1;
            unsigned mask = __shfl_sync(DY_ALL_LANES, mine, word);
            while (mask) {
                T loaded[U][J];
                I number[U];
                #pragma unroll
                for (int u = 0; u < U; ++u, mask &= mask - 1) {
                    number[u] = mask ? first + word * DY_WARP + __ffs(mask) - 1 : -1;
                    #pragma unroll
                    for (int j = 0; j < J; ++j) {
                        const I c = column + j * blockDim.x;
                        loaded[u][j] = number[u] >= 0 && c < columns ? item(number[u], c) : (T)0;
                    }
                }
                #pragma unroll
                for (int u = 0; u < U; ++u)
                    if (number[u] >= 0) {
                        #pragma unroll
                        for (int j = 0; j < J; ++j)
                            sums[j] += loaded[u][j];
                    }
            }
        }
    }
}
#endif
