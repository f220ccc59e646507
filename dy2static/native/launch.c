/* The launcher: runs the steps of a region on a device, one after the other, without Python between them.

   A region is a vector of words (backends/cuda/launching.py writes it):

       number of arrays (inputs and outputs) · bytes where each piece of scratch memory begins, behind their number · steps

   and a step is

       kind · how many addresses and further words there are · how many addresses · numbers of addresses · further words

   A kind is a function of this file, in the order of KINDS in launcher.py.  A new kind is such a function, and a word in KINDS.  It
   may call whatever is in the table of dy2static_launch.h on `run->stream`, but nothing that allocates memory or waits: then it can
   also be recorded into a graph (launch_graphs.c).  It may use the addresses that the step lists, and no others, but for those that it
   finds in memory of the device.

   The addresses of a run are those of the arrays, then those of the pieces of scratch memory. */
#include <pthread.h>
#include <string.h>

#include "dy2static_launch.h"
#include "dy2static_python.h"

/* A flag of `modes`: algorithms of products are measured. */
enum { DY_MEASURED = 1 << 25 };

/* Whose error a status is. */
enum { OF_DRIVER = 0, OF_PRODUCTS = 1, OF_LAUNCHER = 2, OF_CONVOLUTIONS = 3 };

/* What a run needs of its device.  One run at a time: its lock is held. */
typedef struct {
    const dy_driver *driver;
    void *context;                          /* CUcontext */
    void *products;                         /* cublasHandle_t, or null */
    int64_t workspace;                      /* bytes of memory that products may use while they run */
    void *stream, *memory;                  /* what `products` works with at present */
    void *recorder;                         /* a stream of our own, on which graphs are recorded; null: there are no graphs */
    struct dy_choice *choices[64];          /* algorithms that were measured, by hashes (launch_tuning.c); they stay */
    const struct dy_record *known;          /* what earlier processes have measured, and how many that are; they stay, too */
    int64_t known_count;
    int64_t fresh;                          /* how many sorts were measured that `launch_fresh` has not given yet */
    pthread_mutex_t lock;
} dy_device;

/* memory: the workspace of this stream.  modes: the compute types of CuPy for floats of 16, 32 and 64 bits, a byte
   each; above them, whether algorithms of cuDNN may give other bits in each run, and whether those of products are measured. */
typedef struct {
    dy_device *device;
    void *stream;
    void *memory;
    int64_t modes;
    const uint64_t *addresses;
    int library;                            /* whose error it is, where there is one */
} dy_run;

typedef struct {
    int64_t kind, length, count;
    int64_t words[];
} dy_step;

typedef int dy_kind(dy_run *run, const dy_step *step, const int64_t *words);

/* What a kernel stores in a table (backends/cuda/updates.py has its text): 4,096 bytes is the most that kernels are given. */
enum { MOST_WORDS = 500, TABLE_THREADS = 128 };
typedef struct { int64_t begin, count, words[MOST_WORDS]; } dy_table;

/* The k-th address of a step, and some bytes from there. */
static uint64_t address_of(const dy_run *run, const dy_step *step, int k, int64_t bytes)
{
    return run->addresses[step->words[k]] + (uint64_t)bytes;
}

/* What a kernel is given: where its arguments are, addresses and then numbers.  There are less than `step->length`.
   words: those of the kernel, which are the last ones of the step. */
static void arguments_of(const dy_run *run, const dy_step *step, const int64_t *words, void **arguments)
{
    for (int64_t k = 0; k < step->count; ++k)
        *arguments++ = (void *)(run->addresses + step->words[k]);
    for (words += 3; words < step->words + step->length; ++words)
        *arguments++ = (void *)words;
}

/* addresses that the kernel is given; function · blocks · threads · numbers that it is given behind the addresses */
static int launch_kernel(dy_run *run, const dy_step *step, const int64_t *words)
{
    void *arguments[step->length];
    arguments_of(run, step, words, arguments);
    return run->device->driver->cuLaunchKernel((void *)words[0], (unsigned)words[1], 1, 1, (unsigned)words[2], 1, 1, 0, run->stream,
                                               arguments, 0);
}

/* Constants, and then words that the run is given, for a place in a table. */
static void fill_table(const dy_run *run, const dy_step *step, const int64_t *words, dy_table *table)
{
    const int64_t constants = words[2];
    table->begin = words[1];
    table->count = constants + step->count - 1;
    memcpy(table->words, words + 3, sizeof *words * (size_t)constants);
    for (int64_t k = 1; k < step->count; ++k)
        table->words[constants + k - 1] = (int64_t)run->addresses[step->words[k]];
}

/* the table · words that the run is given; function · how many words are before these · how many constants · constants.

   The words are arguments of the kernel: no memory of the host is read when it runs. */
static int launch_table(dy_run *run, const dy_step *step, const int64_t *words)
{
    dy_table table;
    void *arguments[] = {(void *)(run->addresses + step->words[0]), &table};
    fill_table(run, step, words, &table);
    return run->device->driver->cuLaunchKernel((void *)words[0], 1, 1, 1, TABLE_THREADS, 1, 1, 0, run->stream, arguments, 0);
}

/* What results are multiplied by, and what was there before: doubles, or floats. */
static const void *one_of(int is_wide)
{
    static const float one = 1;
    static const double wide = 1;
    return is_wide ? (const void *)&wide : &one;
}

static const void *zero_of(int is_wide)
{
    static const float zero = 0;
    static const double wide = 0;
    return is_wide ? (const void *)&wide : &zero;
}

typedef int dy_set_stream(void *handle, void *stream);
typedef int dy_convolve(void *handle, const void *alpha, void *first, const void *at_first, void *second, const void *at_second,
                        void *convolution, int algorithm, void *memory, size_t size, const void *beta, void *out, void *at_out);

/* first operand · second operand · result · workspace; a handle of cuDNN · its function that sets the stream · its function that
   computes · whether scales are doubles · descriptors of operands and result · without TF32: descriptor of the convolution, algorithm,
   bytes of the workspace · the same with TF32 · both where the bits may differ from run to run */
static int launch_convolution(dy_run *run, const dy_step *step, const int64_t *words)
{
    const int64_t *const chosen = words + 7 + ((run->modes >> 8 & 255) == DY_TF32 ? 3 : 0) + (run->modes >> 24 & 1 ? 6 : 0);
    void *const handle = (void *)words[0], *at[4];
    for (int k = 0; k < 4; ++k)
        at[k] = (void *)address_of(run, step, k, 0);
    run->library = OF_CONVOLUTIONS;
    int status = ((dy_set_stream *)words[1])(handle, run->stream);
    if (!status)
        status = ((dy_convolve *)words[2])(
            handle, one_of((int)words[3]), (void *)words[4], at[0], (void *)words[5], at[1], (void *)chosen[0], (int)chosen[1], at[3],
            (size_t)chosen[2], zero_of((int)words[3]), (void *)words[6], at[2]);
    if (!status)
        run->library = OF_DRIVER;
    return status;
}

/* the condition, and all addresses that the steps use; a kernel that sets the condition of a graph · steps that are repeated, each as
   usual.  A loop exists in a graph only. */
static int launch_while(dy_run *run, const dy_step *step, const int64_t *words)
{
    (void)run, (void)step, (void)words;
    return DY_NOT_SUPPORTED;
}

/* to; how many bytes */
static int launch_clear(dy_run *run, const dy_step *step, const int64_t *words)
{
    return run->device->driver->cuMemsetD8Async(address_of(run, step, 0, 0), 0, (size_t)words[0], run->stream);
}

/* to · from; bytes from each of these · how many bytes */
static int launch_copy(dy_run *run, const dy_step *step, const int64_t *words)
{
    return run->device->driver->cuMemcpyDtoDAsync_v2(address_of(run, step, 0, words[0]), address_of(run, step, 1, words[1]),
                                                     (size_t)words[2], run->stream);
}
