/* Products that cublasLt finishes: it adds a bias to each row of the result, and applies ReLU, before it stores the result.

   cublasLt's heuristics choose an algorithm for the sizes and alignments at hand.  What it does with NaN is not documented for ReLU,
   and eager mode keeps NaN.  So an algorithm with ReLU is tried once: a bias of NaN has to make results of NaN.  This waits for the device
   once for each set of alignments, in the first run with them.  Where an algorithm cannot be had, or does not keep NaN, or cannot be
   tried because the stream is recorded, the step is a product and a kernel.  That is one of the candidates where algorithms are measured. */

/* The words of a step behind those of its product.  The state: a list of choices, one for each set of alignments and modes that has come,
   because graphs for several are made in turns. */
enum { WITH_RELU = 16, BIAS_BEGIN = 17, FINISH_STATE = 18, KERNEL = 19 };

/* A product, and a kernel that does the rest. */
static int launch_in_turns(dy_run *run, const dy_step *step, const int64_t *words)
{
    const int status = launch_product(run, step, words);
    if (status)
        return status;
    const int64_t *const kernel = words + KERNEL;
    void *arguments[step->length];
    arguments_of(run, step, kernel, arguments);
    return run->device->driver->cuLaunchKernel((void *)kernel[0], (unsigned)kernel[1], 1, 1, (unsigned)kernel[2], 1, 1, 0, run->stream,
                                               arguments + 4, 0);
}

/* What is known of a step for this run; null where cublasLt does not compute it. */
static const dy_choice *finish_of(const dy_task *task)
{
    const dy_run *const run = task->run;
    const dy_sort sort = sort_of(task);
    dy_choice **const list = is_measuring(run) ? measured_choices(run, &sort)
                                               : (dy_choice **)(task->words + FINISH_STATE);        /* the region's own memory */
    dy_choice *choice = known_choice(*list, &sort);
    if (!choice && run->device->driver->cublasLtMatmul && (size_t)run->device->workspace > reserved(task) && !is_recorded(run)
        && (choice = new_choice(list, &sort)) && !describe(task, choice) && !(is_measuring(run) && recall(task, choice))) {
        choice->is_usable = expected(task, choice, 1, &choice->chosen) == 1 && !choice->chosen.status
            && (task->epilogue != DY_EPILOGUE_RELU_BIAS || keeps_nan(task, choice, &choice->chosen.algorithm));
        if (is_measuring(run))
            measure(task, choice);
    }
    return choice && choice->is_usable ? choice : 0;
}

/* a · b · c · bias · arguments of a kernel that does the rest; the words of a product · with ReLU · bytes from the bias · a place for
   what is known of the step · the words of the kernel */
static int launch_finished(dy_run *run, const dy_step *step, const int64_t *words)
{
    dy_task task = task_of(run, step, words, launch_in_turns);
    task.at[3] = address_of(run, step, 3, words[BIAS_BEGIN]);
    task.epilogue = words[WITH_RELU] ? DY_EPILOGUE_RELU_BIAS : DY_EPILOGUE_BIAS;
    const dy_choice *const finish = finish_of(&task);
    return finish ? multiply(&task, finish, &finish->chosen.algorithm) : launch_in_turns(run, step, words);
}
