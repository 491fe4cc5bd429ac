/*
 * posenc launch: one launch of posenc compare, which starts it (launches.h): reads its orders, times
 * the pairs they name and sends what it finds.  It is no command for people.
 */
#define _DEFAULT_SOURCE
#include "launches.h"

#ifdef __linux__
#include <signal.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { LEAST_ROUNDS = 5, QUICK_ROUNDS = 31, FULL_ROUNDS = 61 };

struct orders {
    json_t *json;
    const json_t *items; /* [[item, case, name], ...], case by case */
    size_t at;           /* the first of the case that is being timed */
    uint64_t seed;
    double deadline;
    FILE *out;
    struct pairing pairing;
    struct work work;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t number_at(const struct orders *o, size_t index, size_t column)
{
    return (size_t)json_integer_value(json_array_get(json_array_get(o->items, index), column));
}

static void send_message(struct orders *o, json_t *message)
{
    if (!message || json_dumpf(message, o->out, RECORDS_DUMP) != 0 ||
        fputc('\n', o->out) == EOF || fflush(o->out) != 0)
        _exit(EXIT_USAGE); /* nobody reads any more */
    json_decref(message);
}

/* ---- What is found ---- */

static void tell_doing(void *user, size_t pair, enum pair_side who)
{
    struct orders *o = user;
    send_message(o, json_pack("{s:s,s:I,s:s}", "t", "at", "item",
                              (json_int_t)number_at(o, o->at + pair, 0), "who",
                              who < PAIR_SIDES ? pair_side_name[who] : "rounds"));
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, record_number(values[i]));
    return list;
}

static void tell_result(void *user, const struct pair_result *r)
{
    struct orders *o = user;
    json_t *message =
        json_pack("{s:s,s:I,s:i,s:s}", "t", "result", "item",
                  (json_int_t)number_at(o, o->at + r->pair, 0), "outcome", (int)r->outcome,
                  "who", r->who < PAIR_SIDES ? pair_side_name[r->who] : "rounds");
    if (r->outcome != BENCH_TIMED) {
        json_object_set_new(message, "reason", json_string(r->reason));
    } else {
        json_object_set_new(message, "base_ns", record_number(r->ns[PAIR_BASE]));
        json_object_set_new(message, "head_ns", record_number(r->ns[PAIR_HEAD]));
        json_object_set_new(message, "head", numbers(r->x, r->rounds));
        json_object_set_new(message, "null", numbers(r->z, r->rounds));
        if (r->roof_kind)
            json_object_set_new(message, "roof",
                                json_pack("{s:s,s:s,s:o}", "kind", r->roof_kind, "variant",
                                          r->roof_variant, "ns", record_number(r->roof_ns)));
    }
    send_message(o, message);
}

/* ---- What is timed ---- */

static struct bench_pair pair_of(const struct orders *o, size_t index)
{
    const struct pairing_name *name = &o->pairing.names[number_at(o, index, 2)];
    return (struct bench_pair){ { name->base, name->head, name->again } };
}

/* The items of one case, from `at` on; returns how many they are. */
static size_t run_case(struct orders *o, struct bench_pair *pairs)
{
    const size_t total = json_array_size(o->items), c = number_at(o, o->at, 1);
    size_t n = 0;
    for (; o->at + n < total && number_at(o, o->at + n, 1) == c; n++)
        pairs[n] = pair_of(o, o->at + n);
    const double left = o->deadline - now_s();
    const struct pair_options options = {
        .seed = mix64(o->seed, c),
        .scalar = { library_subject(o->pairing.base, "scalar"),
                    library_subject(o->pairing.head, "scalar") },
        .rows_alone = json_is_true(json_object_get(o->json, "rows_alone")),
        .share_s = left > 0.0 ? left * (double)n / (double)(total - o->at) : 0.0,
        .least_rounds = LEAST_ROUNDS,
        .most_rounds = o->work.cli->full ? FULL_ROUNDS : QUICK_ROUNDS,
        .doing = tell_doing,
        .sink = tell_result,
        .user = o
    };
    char error[256];
    if (pairs_run(&o->pairing.cases[c], pairs, n, &options, error) != 0)
        _exit(EXIT_USAGE);
    return n;
}

static json_t *hash_of(const struct library *library)
{
    char hex[65] = "";
    pairing_sha256(library, hex);
    return json_string(hex);
}

static int run_orders(struct orders *o)
{
    struct bench_pair pairs[PAIRING_NAMES];
    send_message(o, json_pack("{s:s,s:o,s:o}", "t", "builds", "base", hash_of(o->pairing.base),
                              "head", hash_of(o->pairing.head)));
    o->deadline = now_s() + json_real_value(json_object_get(o->json, "share_s"));
    while (o->at < json_array_size(o->items))
        o->at += run_case(o, pairs);
    send_message(o, json_pack("{s:s}", "t", "end"));
    return EXIT_FINE;
}

/* ---- The process ---- */

/* It ends with the process that started it: on Linux whatever it is doing, elsewhere with the next
 * message that nobody reads. */
static bool end_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    return getppid() == parent;
}

/* Another place of the stack and of the heap in each launch: what a layout costs is then part of the
 * noise, and no difference between two builds.  Address-space randomisation alone moves whole pages. */
static int run_displaced(struct orders *o, unsigned bytes)
{
    volatile char *displaced = __builtin_alloca(bytes + 1);
    displaced[bytes] = 0;
    const size_t more = (size_t)mix64(o->seed, bytes) % 65536;
    char *heap = malloc(more + 1);
    const int status = run_orders(o);
    free(heap);
    return status;
}

static bool read_orders(struct orders *o)
{
    o->out = fdopen(LAUNCH_RESULTS, "w");
    o->json = o->out ? json_loadf(stdin, 0, NULL) : NULL;
    o->items = json_object_get(o->json, "items");
    o->seed = mix64((uint64_t)json_integer_value(json_object_get(o->json, "seed")),
                    (uint64_t)json_integer_value(json_object_get(o->json, "launch")));
    return json_is_array(o->items) &&
           end_with((pid_t)json_integer_value(json_object_get(o->json, "parent")));
}

int command_launch(struct cli *cli)
{
    struct orders *o = calloc(1, sizeof *o);
    if (!o || !read_orders(o)) {
        free(o);
        return cli_refuse(cli, "launch", NULL,
                          "is started by posenc compare: expected posenc compare BASE HEAD");
    }
    int status = pairing_open(&o->pairing, &o->work, cli, true);
    if (status == EXIT_FINE)
        status = run_displaced(o, (unsigned)mix64(o->seed, 0) % 16384 / 16 * 16);
    pairing_close(&o->pairing);
    work_free(&o->work);
    json_decref(o->json);
    free(o);
    return status;
}
