/* Patches: windows that lie in the image, without padding, and do not overlap along a row, as where networks cut images into patches.

   Planes would only be a detour for them: a panel is gathered from the image itself, some neighbouring taps of some windows at a time.

   Before the include: dy2static_planes.h. */

enum { PATCH = 4 };                             /* taps side by side, from which on they are read together */

static int are_patches(const dy_windows *w)
{
    int are = w->kernel[2] >= PATCH && w->dilate[2] == 1 && w->stride[2] >= w->kernel[2];
    for (int axis = 0; axis < 3; axis++) {
        const int64_t last = (w->spots[axis] - 1) * w->stride[axis] + (w->kernel[axis] - 1) * w->dilate[axis];
        are &= !w->pad[axis] && last < w->image[axis];
    }
    return are;
}

/* The place of each tap in the first window, of each window of several images in the first of them, and in one channel of the
   result; images of results are `next` elements apart. */
static void find_patches(const dy_windows *w, const int64_t images, int64_t *where, int64_t *from, int64_t *to, const int64_t next)
{
    const int64_t row = w->image[2], slice = w->image[1] * row, useful = count(w->spots);
    for (int64_t c = 0; c < w->in; c++)
        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)
            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++)
                for (int64_t k2 = 0; k2 < w->kernel[2]; k2++)
                    *where++ = (c * w->image[0] + k0 * w->dilate[0]) * slice + k1 * w->dilate[1] * row + k2;
    for (int64_t i = 0; i < images; i++)
        for (int64_t q = 0; q < useful; q++) {
            const int64_t q0 = q / (w->spots[1] * w->spots[2]), q1 = q / w->spots[2] % w->spots[1], q2 = q % w->spots[2];
            *from++ = i * step_of_x(w) + q0 * w->stride[0] * slice + q1 * w->stride[1] * row + q2 * w->stride[2];
            *to++ = i * next + q;
        }
}
