/* The threads that take part in shared work, one team for the process: the library that team.py builds.

   Shares are dealt in one range to each thread, which keeps parts of arrays in the caches of one core; who has no more takes
   from others.  The caller never waits for a thread that has not begun.  It waits for shares that others are at; where that
   took too long, or nobody came to help, the next few jobs are done alone, and so are all while other processes want every
   core.

   Workers look for more work for some microseconds before they go to sleep, and leave the core when others want it.  A child
   made by fork has no workers and does not start any. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

typedef void dy_body(const void *given, int64_t begin, int64_t end);

enum {
    MOST_THREADS = 64,
    AWAKE = 300 * 1000,             /* nanoseconds for which a worker looks for more work */
    CROWDED = 20 * 1000,            /* sched_yield took longer: others use this core */
    SLOW = 50 * 1000,               /* to wait so long may be chance */
    LONG = 100 * 1000,              /* against this it is little to wake others */
    MOST_SKIPPED = 256,
    ASK_AFTER = 20 * 1000 * 1000
};

/* Floating-point state: workers compute as the caller would, and the caller gets their exceptions. */
#if defined(__x86_64__)
typedef unsigned float_state;
static float_state get_state(void) { return __builtin_ia32_stmxcsr(); }
static void set_state(const float_state *state) { __builtin_ia32_ldmxcsr(*state & ~0x3fu); }
static int get_flags(void) { return __builtin_ia32_stmxcsr() & 0x3f; }
static void raise_flags(const int flags) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | (unsigned)flags); }
#else
#include <fenv.h>
typedef fenv_t float_state;
static float_state get_state(void)
{
    fenv_t state;
    fegetenv(&state);
    return state;
}
static void set_state(const float_state *state)
{
    fesetenv(state);
    feclearexcept(FE_ALL_EXCEPT);
}
static int get_flags(void) { return fetestexcept(FE_ALL_EXCEPT); }
static void raise_flags(const int flags) { feraiseexcept(flags); }
#endif

typedef struct {
    int64_t next, end;              /* shares */
} __attribute__((aligned(64))) range;

static struct {
    dy_body *body;
    const void *given;
    int64_t count, step;
    int ranges, threads, core;
    float_state state;
} job;

static range ranges[MOST_THREADS];
static int64_t threads = 1;
static int workers;
static int busy;                    /* somebody has the team */
static int64_t jobs;                /* how many there were */
static __attribute__((aligned(64))) int64_t current;    /* the number of the job at hand, or 0 */
static __attribute__((aligned(64))) int inside;         /* workers that look at the job */
static int sleeping, flags, helped;
static int skip, penalty, insisting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_to_do = PTHREAD_COND_INITIALIZER;

#define GET(WHAT) __atomic_load_n(&(WHAT), __ATOMIC_SEQ_CST)
#define SET(WHAT, VALUE) __atomic_store_n(&(WHAT), VALUE, __ATOMIC_SEQ_CST)
#define ADD(WHAT, VALUE) __atomic_fetch_add(&(WHAT), VALUE, __ATOMIC_SEQ_CST)

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void pause_a_little(void)
{
#if defined(__x86_64__)
    for (int k = 0; k < 16; k++)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
    for (int k = 0; k < 16; k++)
        __asm__ volatile("isb");
#endif
}

/* Shares of one's own range, then of others'; gives how many. */
static int take_part(const int me)
{
    int done = 0;
    for (int k = 0; k < job.ranges; k++) {
        range *const from = &ranges[(me + k) % job.ranges];
        int64_t share;
        while (__atomic_load_n(&from->next, __ATOMIC_RELAXED) < from->end && (share = ADD(from->next, 1)) < from->end) {
            const int64_t begin = share * job.step, end = begin + job.step;
            job.body(job.given, begin, end < job.count ? end : job.count);
            done++;
        }
    }
    return done;
}

/* Sleep while no job has begun since `jobs` was `seen`. */
static void sleep_after(const int64_t seen)
{
    pthread_mutex_lock(&lock);
    ADD(sleeping, 1);
    while (GET(jobs) == seen)
        pthread_cond_wait(&work_to_do, &lock);
    ADD(sleeping, -1);
    pthread_mutex_unlock(&lock);
}

/* Wait for another job than the last one.  Who is woken too late for a job looks for the next one. */
static void wait_for_work(const int64_t last)
{
    for (;;) {
        int64_t begun = GET(jobs);
        for (int64_t begin = now(), before = begin, after; ; before = after) {
            for (int k = 0; k < 8; k++, pause_a_little()) {
                const int64_t seen = GET(current);
                if (seen && seen != last)
                    return;
            }
            sched_yield();
            begun = GET(jobs);
            after = now();
            if (after - before > CROWDED || after - begin > AWAKE)
                break;
        }
        if (GET(current) && GET(current) != last)
            return;
        sleep_after(begun);
    }
}

/* On a busy machine Linux tends to wake a thread on the core of the one that wakes it, where both only take turns: workers
   leave that core to the caller.  A caller that has moved since then, perhaps to the only core that a worker was left, tells
   them to leave this one: a worker behind it would not run before the job is done. */
#if defined(__linux__)
static cpu_set_t allowed;
static int movable;
static struct {
    pid_t thread;
    int core;                       /* the one that it has left; none: below 0 */
} places[MOST_THREADS];
static int core(void) { return sched_getcpu(); }
static void find_cores(void) { movable = !sched_getaffinity(0, sizeof allowed, &allowed); }
static void begin_work(const int me)
{
    __atomic_store_n(&places[me].core, -1, __ATOMIC_RELAXED);
    SET(places[me].thread, (pid_t)syscall(SYS_gettid));
}
static void leave(const int me, const int taken)
{
    cpu_set_t others = allowed;
    CPU_CLR(taken, &others);
    if (movable && CPU_COUNT(&others) && !sched_setaffinity(places[me].thread, sizeof others, &others))
        __atomic_store_n(&places[me].core, taken, __ATOMIC_RELAXED);
}
static void move_workers(const int taken)
{
    for (int me = 1; me <= workers; me++) {
        const int left = __atomic_load_n(&places[me].core, __ATOMIC_RELAXED);
        if (GET(places[me].thread) && left >= 0 && left != taken)
            leave(me, taken);
    }
}
#else
static int core(void) { return -1; }
static void find_cores(void) {}
static void begin_work(const int me) {}
static void leave(const int me, const int taken) {}
static void move_workers(const int taken) {}
#endif

/* To wake a worker must not take the core from another thread, the caller for one: only who has a core for it helps. */
static void be_modest(void)
{
#if defined(__linux__)
    const struct sched_param same = {0};
    if (sched_getscheduler(0) == SCHED_OTHER)
        sched_setscheduler(0, SCHED_BATCH, &same);
#endif
}

static void help(const int me)
{
    set_state(&job.state);
    if (job.core == core() && job.core >= 0)
        leave(me, job.core);
    const int done = take_part(me);
    if (done) {
        __atomic_fetch_or(&flags, get_flags(), __ATOMIC_SEQ_CST);
        ADD(helped, done);
    }
}

static void *worker(void *number)
{
    const int me = (int)(intptr_t)number;
    be_modest();
    begin_work(me);
    for (int64_t last = 0;;) {
        wait_for_work(last);
        ADD(inside, 1);
        const int64_t seen = GET(current);             /* before this the caller waits for us, or there is no job */
        if (seen && seen != last) {
            last = seen;
            if (me < job.threads)
                help(me);
        }
        ADD(inside, -1);
    }
    return 0;
}

/* Signals are for the threads that Python knows. */
static void hire(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    find_cores();
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; workers < threads - 1; workers++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, (void *)(intptr_t)(workers + 1)))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&attributes);
    if (workers < threads - 1)
        threads = workers + 1;                      /* there are no more to be had */
}

static void alone(dy_body *body, const void *given, const int64_t count, int64_t step)
{
    if (step < 0)
        step = count;
    for (int64_t begin = 0; begin < count; begin += step)
        body(given, begin, begin + step < count ? begin + step : count);
}

static void deal(const int64_t shares, const int count)
{
    for (int k = 0; k < count; k++) {
        ranges[k].next = shares * k / count;
        ranges[k].end = shares * (k + 1) / count;
    }
}

static void wake(int wanted)
{
    if (!GET(sleeping))
        return;
    pthread_mutex_lock(&lock);
    if (wanted >= threads - 1 || workers >= threads)    /* else those may be called that are not to come */
        pthread_cond_broadcast(&work_to_do);
    else
        for (; wanted > 0; wanted--)
            pthread_cond_signal(&work_to_do);
    pthread_mutex_unlock(&lock);
}

/* Wait until nobody is at a share; gives for how long. */
static int64_t wait_for_others(const int64_t begin)
{
    for (int k = 0; GET(inside); k++)
        if (k < 64)
            pause_a_little();
        else
            sched_yield();                          /* it may be this core that one of them wants */
    return now() - begin;
}

/* Whether others want all cores: looked up from time to time. */
#if defined(__linux__)
static int all_cores_wanted(void)
{
    char text[64];
    int space = 0;
    const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    const char *at = text;                          /* three averages, then: threads that want to run / all */
    for (; *at && space < 3; at++)
        space += *at == ' ';
    const int64_t ours = 1 + workers - GET(sleeping);
    return atoll(at) - ours >= sysconf(_SC_NPROCESSORS_ONLN);
}
#else
static int all_cores_wanted(void) { return 0; }
#endif

static int is_crowded(const int64_t time)
{
    static int64_t asked;
    static int crowded;
    if (time - asked > ASK_AFTER) {
        asked = time;
        crowded = all_cores_wanted();
    }
    return crowded;
}

/* How many jobs to do alone after a short one that nobody came to, or one that others were long at. */
static void learn(const int64_t worked, const int64_t waited)
{
    if (helped ? waited < SLOW || waited < worked / 2 : worked > LONG) {
        penalty /= 2;
        return;
    }
    penalty = penalty ? 2 * penalty : 1;
    if (penalty > MOST_SKIPPED)
        penalty = MOST_SKIPPED;
    skip = penalty;
}

/* step: of a share, or less than 0: of one for each thread that comes, all at once if none does. */
static void run(dy_body *body, const void *given, int64_t count, int64_t step)
{
    const int64_t size = step < 0 ? -step : step, shares = (count + size - 1) / size;
    if (GET(threads) < 2 || shares < 2 || __atomic_exchange_n(&busy, 1, __ATOMIC_SEQ_CST)) {
        alone(body, given, count, step);
        return;
    }
    const int64_t begin = now();
    if (!insisting && (skip > 0 || is_crowded(begin))) {
        skip -= skip > 0;
        SET(busy, 0);
        alone(body, given, count, step);
        return;
    }
    if (workers < threads - 1)
        hire();
    job.body = body;
    job.given = given;
    job.count = count;
    job.step = size;
    job.threads = (int)threads;
    job.ranges = shares < threads ? (int)shares : (int)threads;
    job.state = get_state();
    job.core = core();
    move_workers(job.core);
    deal(shares, job.ranges);
    flags = helped = 0;
    SET(current, ++jobs);
    wake(job.ranges - 1);
    take_part(0);
    SET(current, 0);
    const int64_t done = now(), waited = wait_for_others(done);
    learn(done - begin, waited);
    if (flags)
        raise_flags(flags);
    SET(busy, 0);
}

/* What others know of the team. */
struct {
    void (*run)(dy_body *, const void *, int64_t, int64_t);
    int64_t threads;
} team = {run, 1};

/* How many threads take part, the caller included. */
void set_threads(int count)
{
    skip = penalty = 0;
    team.threads = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count;
    SET(threads, team.threads);
}

int get_threads(void) { return (int)GET(threads); }

/* Whether to share whatever it is worth: for tests. */
void insist(int always) { SET(insisting, always); }

/* Workers that there are. */
int get_workers(void) { return workers; }

static void in_child(void)
{
    pthread_mutex_init(&lock, 0);
    pthread_cond_init(&work_to_do, 0);
    threads = team.threads = 1;
    workers = busy = inside = sleeping = skip = penalty = 0;
    current = 0;
}

static __attribute__((constructor)) void watch_forks(void) { pthread_atfork(0, 0, in_child); }
