/*
 * The posenc program: finds the command, parses its options and runs it. "posenc table ..." calls command_table(), and
 * "posenc plot ..." is replaced by the external program posenc-plot (data.h).
 *
 * If there are plug-ins, a command that calls kernels itself runs in a worker, as a plug-in may crash.
 */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"
#include "args.h"
#include "data.h"
#include "outputs.h"
#include "plugins.h"
#include "select.h"
#include "base/text/text.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command commands[] = {
    { "list", FOR_LIST, command_list,
      "[backends|kernels|models|types|numerics|scalings|methods|cases|tuning]",
      "Lists backends, kernels, models and cases",
      "Without an argument: backends, kernels and models. `types` lists the model types that\n"
      "--config supports and rejects.\n"
      "Examples\n"
      "  posenc list kernels\n"
      "  posenc list cases --dtype bf16\n" },
    { "verify", FOR_VERIFY, command_verify, "", "Checks backends for conformance",
      "Runs golden vectors, accuracy scans with error limits, digests, and checks of memory,\n"
      "properties, side effects and random problems on every backend that runs here, or on\n"
      "those selected. With --plugin alone, on the plug-in. Exit code 1 if anything fails.\n"
      "Examples\n"
      "  posenc verify --kernel rope_half --backend avx2\n"
      "  posenc verify -v --case rope_half/f32/given/hd96-r24\n" },
    { "bench", FOR_BENCH, command_bench, "", "Times backends",
      "Prints a median with an interval, GB/s of useful bytes, % of roofline and the speedup\n"
      "over libm. Every output is checked before it is timed. Without --model: one shape in\n"
      "each level of memory. With --plugin: kernels that it has, unless --kernel or --case\n"
      "selects others. Exit code 1 if an output is wrong, 77 if nothing can be timed: under "
      "an\n"
      "emulator, and where Google Benchmark is not built in. --instructions counts instead: "
      "the\n"
      "instructions of each element and of the call besides, exact even on a busy machine.\n"
      "Counting needs Linux on x86-64.\n"
      "Examples\n"
      "  posenc bench --kernel rope_half --dtype bf16\n"
      "  posenc bench --instructions --kernel rope_half\n"
      "  posenc bench --model llama-3.1-8b -o run.jsonl\n" },
    { "pair", FOR_PAIR, command_pair, "BASE HEAD", "Times two builds side by side, once",
      "BASE and HEAD are builds of the library (libposenc.so) or plug-ins. Both are timed in\n"
      "this process, alternately, with a second copy of BASE as the A/A control. One process\n"
      "gives no verdict: posenc compare runs this command several times and judges the "
      "samples.\n"
      "Exit code 1 if HEAD fails a check, 5 if nothing can be compared, 77 if nothing can be\n"
      "timed.\n"
      "Examples\n"
      "  posenc pair base/libposenc.so head/libposenc.so --kernel rope_half\n"
      "  posenc pair old.so new.so --part results,times -o pair.jsonl\n" },
    { "table", FOR_TABLE, command_table, "[TABLE]",
      "Prints the numbers that a kernel computes, by one backend",
      "--problem LINE prints the output of any kernel. With --model or --config, LINE changes\n"
      "the model's call, and the kernel alone may stand for it. Its fields mrope_section,\n"
      "position_kind=i64 and mrope_grid=WIDTH make the tokens a picture, row by row.\n"
      "Other tables are columns of CSV:\n"
      "  frequencies  each pair's, with and without scaling\n"
      "  drift        the first position at which a numerics mode is off\n"
      "  errors       the largest error of cosines and sines by position, for each backend "
      "and\n"
      "               numerics mode, and with tables, positions or frequencies in 16 bits\n"
      "Examples\n"
      "  posenc table --problem 'sinusoidal dim=512' --positions 0..63,1000000 -o pe.npy\n"
      "  posenc table rope_table --model llama-3.1-8b --positions 131071\n"
      "  posenc table frequencies --problem 'rope_table rotary_dim=128 scaling=ntk factor=4'\n"
      "  posenc table --problem 't5_bias heads=1 queries=1 keys=9 query_offset=4\n"
      "      num_buckets=8 max_distance=16 bidirectional=true recipe=index'\n" },
    { "vectors", FOR_VECTORS, command_vectors, "export DIR|prompts DIR|answers DIR",
      "Exports golden vectors, and judges answers to them",
      "export writes a new folder: cases.jsonl has the parameters of each case and names its\n"
      "tensors, which are files in safetensors format. `sha256sum -c vectors/SHA256SUMS`\n"
      "checks them there. prompts writes a new folder: each case as the file that a\n"
      "program answers (docs/protocol.md), its expected outputs, and the calls of --model.\n"
      "answers reads DIR/answers and gives the verdict of verify, for the same options.\n"
      "Examples\n"
      "  posenc vectors export golden\n"
      "  posenc vectors prompts work --kernel rope_half --model llama-3.1-8b\n"
      "  posenc vectors answers work --kernel rope_half --model llama-3.1-8b\n" },
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* External commands of the Python part (reports/posenc), for the help and for messages. */
static const struct {
    const char *name, *summary;
} external_commands[] = {
    { "compare", "Compares two builds or two runs: speed and results" },
    { "doctor", "Finds conditions on this machine that disturb timings, and their fixes" },
    { "explain",
      "Explains a model file, a kernel, a scaling, a mode, a method or a parameter" },
    { "explore", "Writes an interactive page about encodings, for a browser" },
    { "plot", "Draws encodings, errors and speeds" },
    { "report", "Shows which backend is fastest here, how sure that is, and if it is right" },
    { "results", "Exports, merges and trends files of results" },
    { "scoreboard", "Compares implementations of other libraries: results, errors and speed" },
    { "tune", "Measures which backend to use for which call on this CPU" },
};
enum { N_EXTERNAL = sizeof external_commands / sizeof *external_commands };

static void print_help(FILE *out)
{
    fputs("usage: posenc COMMAND [OPTIONS]\n\n"
          "Positional encodings of transformers on this CPU: is each backend right, and which "
          "is fastest?\n\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-12s%s\n", commands[i].name, commands[i].summary);
    for (size_t i = 0; i < N_EXTERNAL; i++)
        fprintf(out, "  %-12s%s\n", external_commands[i].name, external_commands[i].summary);
    fputs("\nposenc COMMAND --help lists its options.  Results go to stdout, the rest to "
          "stderr.\n"
          "\nExit codes\n"
          "  0      success\n"
          "  1      conformance failure\n"
          "  2      usage or bad input\n"
          "  3      slower or less exact (compare --gate, tune --check)\n"
          "  4      unclear (compare --strict)\n"
          "  5      nothing to compare\n"
          "  6      shards are missing\n"
          "  77     nothing to run here\n"
          "  128+N  ended by signal N (130: SIGINT); finished results are written\n"
          "\nEnvironment\n"
          "  POSENC_BACKEND   force a backend\n"
          "  POSENC_MAX_ISA   use no backend above this one\n"
          "  POSENC_TUNING    use a tuning file of posenc tune\n"
          "  POSENC_PLUGINS   load another folder of plug-ins (empty: none)\n"
          "  POSENC_VECTORS   use other golden vectors\n"
          "  POSENC_PROGRAM   let Python commands from pip use this program\n"
          "  NO_COLOR         print no colours\n"
          "  HF_HUB_CACHE     find models of --config ORG/NAME in this folder\n"
          "  HF_HOME          find them in hub, below this folder\n"
          "  XDG_CONFIG_HOME  keep the tuning file below this folder (default: ~/.config)\n"
          "  XDG_CACHE_HOME   keep builds of compare --rev below it (default: ~/.cache)\n"
          "  TMPDIR           keep temporary files in this folder (default: /tmp)\n",
          out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

_Noreturn static void reject_command(const char *name)
{
    const char *names[N_COMMANDS + N_EXTERNAL];
    size_t n = 0;
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[n++] = commands[i].name;
    for (size_t i = 0; i < N_EXTERNAL; i++)
        names[n++] = external_commands[i].name;
    cli_reject_name("command", name, names, n);
}

_Noreturn static void run_external(const char *name, char **argv)
{
    external_exec(name, argv);
    for (size_t i = 0; i < N_EXTERNAL; i++) {
        if (strcmp(name, external_commands[i].name) != 0)
            continue;
        cli_set_command(name);
        cli_reject("command", NULL,
                   "posenc-%s is not installed: install the Python part of posenc (list, "
                   "verify, bench and table work without it)",
                   name);
    }
    reject_command(name);
}

/* Returns true for a command that calls kernels in its own process; others use workers. */
static bool calls_kernels(const struct command *command, const struct cli *cli)
{
    return (command->bit & (FOR_LIST | FOR_TABLE)) || cli->verbose || cli->instructions;
}

/* ---- Commands in a worker ---- */

/* A command that calls kernels, in a worker that keeps standard output. */
struct command_run {
    const struct command *command;
    struct cli *cli;
    struct worker_job job;
    int code;
    bool has_code; /* the worker sent it */
    int n_polls;   /* calls of pass_signal() since a signal arrived */
};

static size_t run_with_plugins(void *user, size_t first)
{
    const struct command_run *run = user;
    (void)first;
    plugins_load_all();
    worker_exit(outputs_finish(run->command->run(run->cli)));
}

static void receive_exit_code(void *user, json_t *message)
{
    struct command_run *run = user;
    if (json_unpack(message, "{s:i}", "code", &run->code) == 0)
        run->has_code = true;
}

static size_t report_early_end(void *user, const struct worker_end *end)
{
    struct command_run *run = user;
    run->has_code = false;
    run->code = EXIT_CONFORMANCE;
    if (!outputs_interrupted())
        text_print(stderr, "posenc %s: %s %s\n", run->command->name, end->cause,
                   end->status->activity);
    return run->job.n_steps;
}

/* Passes a signal on. Returns false after the time that the worker has to write its results. */
static bool pass_signal(void *user)
{
    enum { GRACE_POLLS = 8 };
    struct command_run *run = user;
    if (outputs_interrupted() && run->n_polls == 0)
        kill(-run->job.pid, outputs_interrupted());
    run->n_polls += outputs_interrupted() != 0;
    return run->n_polls <= GRACE_POLLS;
}

static int run_in_worker(const struct command *command, struct cli *cli)
{
    const struct worker_limits limits = worker_limits_of(cli->limit, (double)INFINITY);
    struct command_run run = { .command = command, .cli = cli, .code = EXIT_CONFORMANCE };
    run.job = (struct worker_job){ .user = &run,
                                   .n_steps = 1,
                                   .run = run_with_plugins,
                                   .on_message = receive_exit_code,
                                   .on_early_end = report_early_end,
                                   .prints = true };
    outputs_catch_signals();
    workers_run(&run.job, 1, 1, &limits, pass_signal, &run);
    return outputs_interrupted() && !run.has_code ? EXIT_SIGNAL + outputs_interrupted()
                                                  : run.code;
}

/* ---- The program ---- */

static int print_version(void)
{
    printf("posenc %s\n", posenc_version());
    return EXIT_OK;
}

static int run_command(const struct command *command, struct cli *cli)
{
    if (cli->help) {
        cli_print_help(command);
        return EXIT_OK;
    }
    if (cli->version)
        return print_version();
    if (cli->quick && (cli->full || cli->exhaustive))
        cli_reject("--quick", NULL, "expected without %s",
                   cli->full ? "--full" : "--exhaustive");
    plugins_set_limit(cli->limit);
    data_load_plugins();
    select_environment(cli);
    tuning_file_select_environment();
    if (calls_kernels(command, cli) && (plugins_exist() || cli->plugin.n > 0))
        return run_in_worker(command, cli);
    return command->run(cli);
}

/* Prints the help of a command, or of the program without a name. */
static int help_command(char *program, const char *name)
{
    if (!name) {
        print_help(stdout);
        return EXIT_OK;
    }
    const struct command *command = find_command(name);
    if (!command)
        run_external(name, (char *[]){ program, NULL, "--help", NULL });
    cli_print_help(command);
    return EXIT_OK;
}

static bool is_one_of(const char *name, const char *a, const char *b, const char *c)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0 || strcmp(name, c) == 0;
}

int main(int argc, char **argv)
{
    outputs_reserve_standard_streams();
    tuning_file_select_default();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (is_one_of(name, "help", "--help", "-h"))
        return outputs_finish(
            help_command(argv[0], strcmp(name, "help") == 0 ? argv[2] : NULL));
    if (is_one_of(name, "version", "--version", "-V"))
        return outputs_finish(print_version());
    const struct command *command = find_command(name);
    if (!command)
        run_external(name, argv);
    static struct cli cli; /* it refers to memory that is never freed */
    cli = (struct cli){ .command = command->name, .argc = argc, .argv = argv };
    cli_set_command(command->name);
    cli_parse(&cli, command, argc - 1, argv + 1);
    return outputs_finish(run_command(command, &cli));
}
