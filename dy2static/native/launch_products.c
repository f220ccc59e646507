/* Products by cuBLAS, with the algorithm that cuBLAS chooses itself. */

/* The compute type of cuBLAS for products of one type, as CuPy chooses it. */
static int compute_of(const dy_run *run, int type)
{
    const int mode = (int)(run->modes >> (type == DY_R_16F ? 0 : type == DY_R_32F ? 8 : 16)) & 255;
    if (type == DY_R_64F)
        return mode == DY_PEDANTIC ? DY_COMPUTE_64F_PEDANTIC : DY_COMPUTE_64F;
    if (mode == DY_PEDANTIC)
        return DY_COMPUTE_32F_PEDANTIC;
    return mode == DY_TF32 && type == DY_R_32F ? DY_COMPUTE_32F_FAST_TF32 : DY_COMPUTE_32F;
}

/* Let cuBLAS compute on the stream of this launch, in its workspace.  Setting a stream takes the workspace away. */
static int prepare_products(dy_run *run)
{
    dy_device *const device = run->device;
    if (device->stream == run->stream && device->memory == run->memory)
        return 0;
    device->memory = 0;
    int status = device->driver->cublasSetStream_v2(device->products, run->stream);
    if (!status)
        status = device->driver->cublasSetWorkspace_v2(device->products, run->memory, (size_t)device->workspace);
    if (!status) {
        device->stream = run->stream;
        device->memory = run->memory;
    }
    return status;
}

/* A product by the algorithm that cuBLAS chooses itself; the words are those of `launch_product`. */
static int launch_unmeasured(dy_run *run, const dy_step *step, const int64_t *words)
{
    const dy_driver *const driver = run->device->driver;
    const int type = (int)words[0], compute = compute_of(run, type);
    const void *const alpha = one_of(type == DY_R_64F), *const beta = zero_of(type == DY_R_64F);
    const int64_t *const a = words + 6, *const b = words + 9, *const c = words + 12, count = words[15];
    void *const at_a = (void *)address_of(run, step, 0, a[0]), *const at_b = (void *)address_of(run, step, 1, b[0]);
    void *const at_c = (void *)address_of(run, step, 2, c[0]);
    run->library = OF_PRODUCTS;
    int status = prepare_products(run);
    if (!status && count == 1)
        status = driver->cublasGemmEx(
            run->device->products, (int)words[1], (int)words[2], (int)words[3], (int)words[4], (int)words[5], alpha, at_a, type, (int)a[1],
            at_b, type, (int)b[1], beta, at_c, type, (int)c[1], compute, DY_GEMM_DEFAULT);
    else if (!status)
        status = driver->cublasGemmStridedBatchedEx(
            run->device->products, (int)words[1], (int)words[2], (int)words[3], (int)words[4], (int)words[5], alpha, at_a, type, (int)a[1],
            a[2], at_b, type, (int)b[1], b[2], beta, at_c, type, (int)c[1], c[2], (int)count, compute, DY_GEMM_DEFAULT);
    if (!status)
        run->library = OF_DRIVER;
    return status;
}

/* a table of the addresses of all a, then of all b, then of all c; type · turn a · turn b · m · n · k · leading dimensions of a, b, c ·
   how many.  A step before has written the table. */
static int launch_scattered(dy_run *run, const dy_step *step, const int64_t *words)
{
    const int type = (int)words[0];
    const int64_t count = words[9];
    void *const *const a = (void *const *)address_of(run, step, 0, 0), *const *const b = a + count, *const *const c = b + count;
    run->library = OF_PRODUCTS;
    int status = prepare_products(run);
    if (!status)
        status = run->device->driver->cublasGemmBatchedEx(
            run->device->products, (int)words[1], (int)words[2], (int)words[3], (int)words[4], (int)words[5], one_of(type == DY_R_64F),
            (const void *const *)a, type, (int)words[6], (const void *const *)b, type, (int)words[7], zero_of(type == DY_R_64F), c, type,
            (int)words[8], (int)count, compute_of(run, type), DY_GEMM_DEFAULT);
    if (!status)
        run->library = OF_DRIVER;
    return status;
}
