/*
 * Plug-in of the tests: alibi in f32, after Press et al. (2108.12409). meson.build makes a shared library of each
 * variant, which these macros select:
 *
 *   PLUGIN_WRONG        is off by one position; by two, for 99 keys, from the second one on
 *   PLUGIN_NONE         exports nothing of the right name
 *   PLUGIN_MORE         has one kernel more, which computes nothing
 *   PLUGIN_TIMES=N      computes N times for 16 queries and 16 keys, the shape that is timed
 *   PLUGIN_COUNTED      is an instruction of assembler, or none, for each element
 *   PLUGIN_COUNTED_ROW  is one for each row
 *   PLUGIN_NAME         is a misbehavior and its time: "exit_in_call.so" exits in the hundredth call of alibi in a
 *                       process. If it is empty, the name of the file selects it. Such a plug-in has alibi_add, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <posenc/backend.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PLUGIN_TIMES
#define PLUGIN_TIMES 1
#endif
#ifdef PLUGIN_NONE
#define posenc_plugin some_other_name
#endif

/* ---- The right kernel ---- */

/* Returns the sum of a bias and x, for alibi_add; without it, the bias. */
static float add_x(const struct posenc_alibi_args *args, const int64_t row[3], int64_t j,
                   float bias)
{
#ifdef PLUGIN_NAME
    const struct posenc_const_tensor *x = &args->x;
    const float *in = x->data;
    if (in)
        for (int i = 0; i < 3; i++)
            in += row[i] * x->stride[i];
    return in ? fmaf(args->x_scale, in[j], bias) : bias;
#else
    (void)args, (void)row, (void)j;
    return bias;
#endif
}

static void alibi_row(const struct posenc_alibi_args *args, int64_t b, int64_t h, int64_t i)
{
    const struct posenc_tensor *out = &args->out;
    const float slope = args->slopes[b * args->slopes_stride_batch + h];
    float *row =
        (float *)out->data + b * out->stride[0] + h * out->stride[1] + i * out->stride[2];
#ifdef PLUGIN_COUNTED_ROW
    __asm__ volatile(PLUGIN_COUNTED_ROW);
#endif
    for (int64_t j = 0; j < out->shape[3]; j++) {
        int64_t distance = i + args->query_offset - j;
#ifdef PLUGIN_WRONG
        distance += out->shape[3] == 99 && j > 0 ? 2 : 1;
#endif
#ifdef PLUGIN_COUNTED
        __asm__ volatile(PLUGIN_COUNTED);
#endif
        const float bias =
            args->causal && distance < 0
                ? -(float)INFINITY
                : slope * (float)-llabs((long long)distance) + 0.0f; /* +0 at 0 */
        row[j] = add_x(args, (const int64_t[]){ b, h, i }, j, bias);
    }
}

static enum posenc_status compute(const struct posenc_alibi_args *args)
{
    const bool timed = args->out.shape[2] == 16 && args->out.shape[3] == 16;
    for (int time = 0; time < (timed ? PLUGIN_TIMES : 1); time++)
        for (int64_t b = 0; b < args->out.shape[0]; b++)
            for (int64_t h = 0; h < args->out.shape[1]; h++)
                for (int64_t i = 0; i < args->out.shape[2]; i++)
                    alibi_row(args, b, h, i);
    return POSENC_OK;
}

#ifdef PLUGIN_MORE
static enum posenc_status compute_nothing(const struct posenc_alibi_args *args)
{
    (void)args;
    return POSENC_ERR_PARAMETER;
}
#endif

extern POSENC_API struct posenc_backend posenc_plugin;
struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "example",
    .family = "example",
    .description = "a plug-in of the tests",
    .required_features = "",
    .alibi = compute,
#ifdef PLUGIN_MORE
    .alibi_add = compute_nothing,
#endif
};

#ifdef PLUGIN_NAME

/* ---- Misbehaviors ---- */

/* With STAYS in the environment exit() never returns, as if two threads had deadlocked in it. */
static volatile bool exit_never_returns;

static void exit_process(void)
{
    exit_never_returns = getenv("STAYS") != NULL;
    exit(0);
}

static void exit_at_once(void) { _exit(0); }
static void exit_as_a_worker(void) { exit(42); } /* the status of a worker that finished */
static void abort_process(void) { abort(); }
static void exit_thread(void) { pthread_exit(NULL); }
static void stop_process(void) { raise(SIGSTOP); }
static void raise_sigpipe(void) { raise(SIGPIPE); }
static void print_line(void) { printf("\033[31mthis is no result\n"); }

static void loop_forever(void)
{
    for (volatile int forever = 1; forever;)
        ;
}

static void sleep_forever(void)
{
    for (;;)
        pause();
}

static volatile bool is_endless = true; /* keeps the compiler from removing the recursion */

static int recurse(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above[0];
    return is_endless ? recurse(frame) + frame[1] : 0;
}

static void overflow_stack(void)
{
    volatile char top[1] = { 0 };
    (void)recurse(top);
}

static void corrupt_heap(void)
{
    volatile char *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = malloc(40);
    for (int i = 0; i < 64; i++)
        for (int b = -16; b < 56; b++)
            blocks[i][b] = (char)0x5a;
    for (int i = 0; i < 64; i++)
        free((void *)(uintptr_t)blocks[i]);
}

/* The new process holds every file of this one. */
static void fork_process(void)
{
    if (fork() == 0)
        sleep_forever();
}

static void close_all_files(void)
{
    for (int file = 3; file < 64; file++)
        close(file);
}

static void close_all_files_and_loop(void)
{
    close_all_files();
    loop_forever();
}

static void kill_group(void) { kill(0, SIGKILL); }

/* Writes lines that are not messages to the pipe of results. */
static void write_to_all_files(void)
{
    static const char lines[] = "no result\n{\"t\":\"check\",\"status\":\"fail\"}\n[1]\n";
    for (int file = 3; file < 64; file++)
        (void)!write(file, lines, sizeof lines - 1);
}

static void write_to_null(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static const struct misbehavior {
    const char *name;
    void (*run)(void);
} misbehaviors[] = {
    { "exit", exit_process },       { "quick_exit", exit_at_once },
    { "done", exit_as_a_worker },   { "abort", abort_process },
    { "thread_exit", exit_thread }, { "stop", stop_process },
    { "print", print_line },        { "loop", loop_forever },
    { "sleep", sleep_forever },     { "stack", overflow_stack },
    { "heap", corrupt_heap },       { "fork", fork_process },
    { "close", close_all_files },   { "fault", write_to_null },
    { "sigpipe", raise_sigpipe },   { "deaf", close_all_files_and_loop },
    { "group", kill_group },        { "scribble", write_to_all_files },
};

/* Returns PLUGIN_NAME or, if that is empty, the name of this file. */
static const char *get_name(void)
{
    static const char name[] = PLUGIN_NAME;
    Dl_info info;
    if (name[0] != '\0')
        return name;
    const char *slash =
        dladdr((const void *)misbehaviors, &info) ? strrchr(info.dli_fname, '/') : NULL;
    return slash ? slash + 1 : "";
}

/* Returns true if the name is "BEGIN.so", or BEGIN and any other suffix. */
static bool is_named(const char *begin)
{
    const size_t n = strlen(begin);
    return strncmp(get_name(), begin, n) == 0 && get_name()[n] == '.';
}

/* Creates the file MISBEHAVED, for which a test waits. */
static void report_misbehavior(void)
{
    const char *path = getenv("MISBEHAVED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file)
        fclose(file);
}

/* Runs the misbehavior of the name if its time is `when`: in exit_in_call.so, "exit" at "in_call". */
static void misbehave(const char *when)
{
    for (size_t i = 0; i < sizeof misbehaviors / sizeof *misbehaviors; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", misbehaviors[i].name, when);
        if (is_named(name)) {
            report_misbehavior();
            misbehaviors[i].run();
        }
    }
}

/* ---- The times at which it misbehaves ---- */

/* Number of calls, on the heap, since a kernel that writes a static variable fails another check first. */
static atomic_int *calls;

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
    const int earlier_calls = calls ? atomic_fetch_add(calls, 1) : 1;
    if (earlier_calls == 0)
        misbehave("in_first_call");
    if (earlier_calls == 99)
        misbehave("in_call");
    return compute(args);
}

static int32_t lanes(void)
{
    static int32_t n_calls;
    misbehave("in_lanes");
    if (is_named("other_lanes"))
        return ++n_calls;
    return is_named("many_lanes") ? 1000000 : 8;
}

__attribute__((constructor)) static void run_when_loaded(void)
{
    calls = calloc(1, sizeof *calls);
    posenc_plugin.alibi = alibi;
    posenc_plugin.alibi_add = compute;
    posenc_plugin.lanes = lanes;
    misbehave("when_loaded");
    if (is_named("second"))
        posenc_plugin.name = "second";
    if (is_named("escapes"))
        posenc_plugin.description = "red \033[31m, \xff\xfe and \xc2\x9b";
    if (is_named("strange_name"))
        posenc_plugin.name = "\033[31mexample\xff";
    if (is_named("strange_needs"))
        posenc_plugin.required_features = "\033]0;title\a";
    if (is_named("other_abi"))
        posenc_plugin.abi = 999;
    if (is_named("no_text"))
        posenc_plugin.description = (const char *)(uintptr_t)16;
    if (is_named("no_code")) /* an invalid pointer, as after a wrong layout */
        posenc_plugin.alibi =
            (enum posenc_status(*)(const struct posenc_alibi_args *))(uintptr_t)64;
}

__attribute__((destructor)) static void run_when_unloaded(void)
{
    misbehave("when_unloaded");
    while (exit_never_returns) {
    }
}

#endif
