/* Channels of several arrays in blocks of channels, in any order, as those of one.

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_JOINS_H
#define DY2STATIC_BLOCKED_JOINS_H

#include "dy2static_blocked.h"

/* channels: of each of the arrays; order: the channels of the result, as numbers of all channels, one array behind the other;
   blocks: of an image of the result. */
typedef struct {
    const int32_t *channels, *order;
    const DY_T *const *xs;
    DY_T *y;
    int64_t count, places, blocks;
} joined;

/* Where a channel of an image is: its block, and the number of the channel there. */
typedef struct {
    const DY_T *block;
    int64_t number;
} channel_place;

static channel_place place_of_channel(const joined *j, const int64_t image, int64_t channel)
{
    int64_t s = 0;
    for (; channel >= j->channels[s]; s++)
        channel -= j->channels[s];
    const int64_t block = image * (in_whole(j->channels[s]) / BLOCK) + channel / BLOCK;
    return (channel_place){j->xs[s] + block * j->places * BLOCK, channel % BLOCK};
}

/* The places of the channels of a block of the result; gives how many there are. */
static int64_t channels_of_block(const joined *j, const int64_t block, channel_place channels[BLOCK])
{
    const int64_t begin = block % j->blocks * BLOCK, there = least(BLOCK, j->count - begin);
    for (int64_t c = 0; c < there; c++)
        channels[c] = place_of_channel(j, block / j->blocks, j->order[begin + c]);
    return there;
}

#if DY_BYTES >= 32
/* What comes to a vector of channels from one of an array: the lane there of each lane, and which lanes come from there. */
typedef struct {
    dy_lane_numbers lanes;
    dy_bits there;
    const DY_T *from;
} picked;

/* Those of the vector of channels that begins at `begin`; gives how many there are. */
static int pick_lanes(const channel_place channels[BLOCK], const int64_t begin, const int64_t end, picked *all)
{
    int count = 0;
    for (int64_t c = begin; c < end; c++) {
        const int64_t lane = channels[c].number % WIDTH;
        const DY_T *const from = channels[c].block + channels[c].number - lane;
        int at = 0;
        while (at < count && all[at].from != from)
            at++;
        if (at == count)
            all[count++] = (picked){{0}, {0}, from};
        all[at].lanes[c - begin] = (int32_t)lane;
        all[at].there[c - begin] = ~0u;
    }
    return count;
}

DY_INLINE void join_places(const int count, const picked *all, const int64_t begin, const int64_t end, DY_T *to)
{
    picked own[4];
#pragma GCC unroll 4
    for (int s = 0; s < count && s < 4; s++)
        own[s] = all[s];
    for (int64_t p = begin * BLOCK; p < end * BLOCK; p += BLOCK) {
        dy_bits value = {0};
#pragma GCC unroll 4
        for (int s = 0; s < count && s < 4; s++)
            value |= (dy_bits)permuted(load(own[s].from + p), own[s].lanes) & own[s].there;
        for (int s = 4; s < count; s++)
            value |= (dy_bits)permuted(load(all[s].from + p), all[s].lanes) & all[s].there;
        store(to + p, (dy_vector)value);
    }
}

/* A block of the result: all its vectors for some places at a time, so that lines of the cache are written once. */
static void join_block(const channel_place channels[BLOCK], const int64_t there, const int64_t places, DY_T *to)
{
    enum { TOGETHER = 32 };
    picked all[IN_BLOCK][WIDTH];
    int counts[IN_BLOCK];
    for (int v = 0; v < IN_BLOCK; v++)
        counts[v] = pick_lanes(channels, v * WIDTH, least(there, (v + 1) * WIDTH), all[v]);
    for (int64_t p = 0, q; p < places; p = q) {
        q = least(places, p + TOGETHER);
        for (int v = 0; v < IN_BLOCK; v++) {
            DY_T *const y = to + v * WIDTH;
            switch (counts[v]) {
            case 1: join_places(1, all[v], p, q, y); break;
            case 2: join_places(2, all[v], p, q, y); break;
            case 3: join_places(3, all[v], p, q, y); break;
            default: join_places(counts[v], all[v], p, q, y);
            }
        }
    }
}
#else
static void join_block(const channel_place channels[BLOCK], const int64_t there, const int64_t places, DY_T *to)
{
    for (int64_t p = 0; p < places * BLOCK; p += BLOCK) {
        for (int64_t c = 0; c < there; c++)
            to[p + c] = channels[c].block[p + channels[c].number];
        for (int64_t c = there; c < BLOCK; c++)
            to[p + c] = 0;
    }
}
#endif

static void some_joined(const void *given, int64_t begin, int64_t end)
{
    const joined *const j = given;
    for (int64_t k = begin; k < end; k++) {
        channel_place channels[BLOCK];
        const int64_t there = channels_of_block(j, k, channels);
        join_block(channels, there, j->places, j->y + k * j->places * BLOCK);
    }
}

static void blocks_join(const int32_t *channels, const DY_T *const *xs, int64_t count, const int32_t *order, int64_t batch,
                        int64_t places, DY_T *y)
{
    const joined j = {channels, order, xs, y, count, places, in_whole(count) / BLOCK};
    dy_share(some_joined, &j, batch * j.blocks, most(1, (1 << 15) / (BLOCK * places)));
}

#endif
