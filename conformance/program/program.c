/* A backend whose kernels ask a program (see program.h). */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include "base/text/text.h"
#include "conformance/problem/guard.h"
#include "connection.h"
#include "prompt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program of this process. */
static struct {
    struct connection connection;
    struct posenc_backend backend;
    char name[64], description[MESSAGE_TEXT]; /* of the backend */
    char numerics[MESSAGE_TEXT]; /* modes that it offers, with blanks between; "": all */
    bool dtypes[3];              /* that it offers, by enum posenc_dtype */
    int64_t max_position;
    uint64_t n_prompts;        /* sent so far */
    char case_id[PROMPT_CASE]; /* of the next prompts */
    exchange *ask;             /* by the connection, or by files */
} program;

static void (*end_process)(const char *reason);

void program_on_loss(void (*end)(const char *reason)) { end_process = end; }

void program_set_case(const char *id)
{
    snprintf(program.case_id, sizeof program.case_id, "%s", id);
    files_begin_case();
}

/* ---- The connection ---- */

/* Ends this process, as the program is lost. */
_Noreturn static void lose(const char *format, ...) PRINTF_LIKE(1, 2);
static void lose(const char *format, ...)
{
    char reason[MESSAGE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (end_process)
        end_process(reason);
    text_print(stderr, "posenc: %s\n", reason);
    _Exit(1);
}

static bool send_message(const struct message *message)
{
    size_t bytes;
    void *whole = message_encode(message, &bytes);
    const bool sent = whole && connection_send(&program.connection, whole, bytes);
    if (!whole)
        notation_fail(program.connection.reason, "out of memory");
    free(whole);
    return sent;
}

/* Returns the number of bytes that an answer may have: eight times the expected ones, so that an answer in f64 is still
 * read and described, and a little more. */
static size_t most_bytes(const struct prompt *prompt)
{
    size_t bytes = 1 << 20;
    for (int o = 0; o < prompt->n_outputs; o++)
        bytes += 8 * prompt->outputs[o].form.bytes;
    return bytes;
}

/* Sends a prompt and receives its answer. The time of the program does not count as that of the kernel. */
static bool ask_connection(struct prompt *prompt, struct message *answer,
                           char reason[MESSAGE_TEXT])
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)++program.n_prompts);
    json_object_set_new(prompt->message.metadata, "prompt", json_string(number));
    guard_pause();
    enum message_status status = MESSAGE_CUT;
    if (send_message(&prompt->message))
        status = message_read(answer, connection_receive, &program.connection,
                              most_bytes(prompt), reason);
    guard_resume();
    if (status == MESSAGE_CUT)
        lose("%s%s%s, at prompt %s", program.connection.reason, *reason ? " " : "", reason,
             number);
    if (status != MESSAGE_WHOLE)
        lose("the answer to prompt %s cannot be read: %s", number, reason);
    const char *own = message_text(answer, "prompt");
    if (!own)
        lose("the answer to prompt %s has no member 'prompt': expected '%s'", number, number);
    if (strcmp(own, number) != 0)
        lose("the answer to prompt %s has the prompt number '%.24s': expected '%s'", number,
             own, number);
    return true;
}

/* ---- Calls ---- */

/* Returns true if the program offered to answer such a prompt. Otherwise writes the part that it did not offer. */
static bool is_offered(const struct prompt *prompt, char reason[MESSAGE_TEXT])
{
    static const char *const dtypes[] = { "F32", "F16", "BF16" };
    const char *numerics = message_text(&prompt->message, "numerics");
    for (int d = 0; d < 3; d++) {
        bool is_used = strcmp(prompt->outputs[0].form.dtype, dtypes[d]) == 0;
        for (size_t i = 0; i < prompt->message.n; i++)
            is_used = is_used || strcmp(prompt->message.tensors[i].dtype, dtypes[d]) == 0;
        if (is_used && !program.dtypes[d] && d != POSENC_DTYPE_F32)
            return notation_fail(reason, "the type %s", dtypes[d]);
    }
    if (*program.numerics && strcmp(numerics, "given") != 0 &&
        !text_has_word(program.numerics, ' ', numerics, strlen(numerics)))
        return notation_fail(reason, "numerics %s", numerics);
    return prompt->farthest <= program.max_position ||
           notation_fail(reason, "positions beyond %lld", (long long)program.max_position);
}

/* Uses an answer if it could be `read`. Explains a status other than POSENC_OK. */
static enum posenc_status use_answer(const struct prompt *prompt, const struct message *answer,
                                     bool read, char reason[MESSAGE_TEXT])
{
    const char *declined = message_text(answer, "declined"),
               *error = message_text(answer, "error");
    const bool both = declined && answer->n > 0;
    if (!read)
        guard_explain(GUARD_WRONG, "the answer cannot be read: %s", reason);
    else if (error)
        guard_explain(GUARD_WRONG, "the program reports an error: %s",
                      *error ? error : "(an empty text)");
    else if (both)
        guard_explain(GUARD_WRONG,
                      "the answer has tensors and 'declined': expected one of them");
    else if (declined)
        guard_explain(GUARD_DECLINED, "%s", *declined ? declined : "(an empty reason)");
    else if (!prompt_accept(prompt, answer, reason))
        guard_explain(GUARD_WRONG, "the answer is wrong: %s", reason);
    else
        return POSENC_OK;
    return declined && !error && !both ? POSENC_ERR_NOT_PROVIDED : POSENC_ERR_ARGUMENT;
}

static enum posenc_status run_kernel(enum posenc_kernel kernel, const void *args)
{
    struct prompt prompt;
    struct message answer = { .n = 0 };
    char reason[MESSAGE_TEXT] = "";
    const struct problem *problem = guard_last_problem(), blank = problem_blank(kernel);
    enum posenc_status status = POSENC_ERR_NOT_PROVIDED;
    if (!prompt_make(&prompt, kernel, args, problem ? problem : &blank, program.case_id)) {
        guard_explain(GUARD_WRONG, "out of memory");
        status = POSENC_ERR_MEMORY;
    } else if (!is_offered(&prompt, reason)) {
        guard_explain(GUARD_NOT_OFFERED, "%s", reason);
    } else {
        const bool read = program.ask(&prompt, &answer, reason);
        status = use_answer(&prompt, &answer, read, reason);
    }
    message_free(&answer);
    prompt_free(&prompt);
    return status;
}

#define POSENC_KERNEL(ID, kernel, signature, ...)                                              \
    static enum posenc_status ask_##kernel(const struct posenc_##signature##_args *args)       \
    {                                                                                          \
        return run_kernel(POSENC_KERNEL_##ID, args);                                           \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

/* Sets the kernels of a list of names, or all if that is NULL. */
static void set_kernels(const char *names)
{
    program.backend.size = sizeof program.backend;
    program.backend.abi = POSENC_ABI;
    program.backend.name = program.name;
    program.backend.family = "program";
    program.backend.description = program.description;
    program.backend.required_features = "";
#define POSENC_KERNEL(ID, kernel, ...)                                                         \
    if (!names || text_has_word(names, ' ', #kernel, strlen(#kernel)))                         \
        program.backend.kernel = ask_##kernel;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* ---- Hello ---- */

/* Requires each word of a text to be in a list, with a NULL at the end. */
static bool check_words(const char *member, const char *text, const char *const *known,
                        char error[NOTATION_ERROR])
{
    char list[NOTATION_ERROR - 128] = "";
    for (size_t i = 0; known[i]; i++)
        text_list_add(list, sizeof list, " ", known[i]);
    const char *word = text ? text + strspn(text, " ") : NULL;
    bool good = true;
    while (word && good) {
        const size_t n = strcspn(word, " ");
        good = (n > 0 && text_has_word(list, ' ', word, n)) ||
               notation_fail(error,
                             "its hello: %s: '%.*s': expected some of %s, with blanks between",
                             member, n < 40 ? (int)n : 40, word, list);
        word += n + strspn(word + n, " ");
        word = *word ? word : NULL;
    }
    return good;
}

/* Requires a member to have letters a-z, digits and _ alone. */
static bool check_name(const char *name, char error[NOTATION_ERROR])
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const size_t n = strlen(name);
    return (n > 0 && n < sizeof program.name && strspn(name, good) == n) ||
           notation_fail(error, "its hello: name: '%.80s': expected 1 to 63 of a-z, 0-9 and _",
                         name);
}

/* Reads a number of decimal digits. */
static bool read_max_position(const char *text, char error[NOTATION_ERROR])
{
    errno = 0;
    program.max_position = text ? strtoll(text, NULL, 10) : INT64_MAX;
    return !text || (*text && strspn(text, "0123456789") == strlen(text) && errno == 0) ||
           notation_fail(error,
                         "its hello: max_position: '%.40s': expected an integer from 0 to %lld",
                         text, (long long)INT64_MAX);
}

static bool read_hello(const struct message *hello, char error[NOTATION_ERROR])
{
    const char *kernel_names[POSENC_KERNEL_COUNT + 1] = { NULL };
    const char *name = message_text(hello, "name"), *kernels = message_text(hello, "kernels"),
               *description = message_text(hello, "description"),
               *dtypes = message_text(hello, "dtypes"),
               *numerics = message_text(hello, "numerics"),
               *most = message_text(hello, "max_position"),
               *fused = message_text(hello, "fused");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        kernel_names[k] = posenc_kernel_name((enum posenc_kernel)k);
    if (strcmp(message_text(hello, "hello"), "1") != 0)
        return notation_fail(error, "its hello: hello: '%.40s': expected '1'",
                             message_text(hello, "hello"));
    if (hello->n > 0)
        return notation_fail(error, "its hello has a tensor '%s': expected metadata alone",
                             hello->tensors[0].name);
    if (!name || !kernels)
        return notation_fail(error, "its hello has no '%s': expected a string",
                             name ? "kernels" : "name");
    if (!check_name(name, error) || !check_words("kernels", kernels, kernel_names, error) ||
        !check_words("dtypes", dtypes && *dtypes ? dtypes : NULL, dtype_names, error) ||
        !check_words("numerics", numerics, numerics_names, error) ||
        !read_max_position(most, error))
        return false;
    if (fused && strcmp(fused, "0") != 0 && strcmp(fused, "1") != 0)
        return notation_fail(error, "its hello: fused: '%.40s': expected '0' or '1'", fused);
    snprintf(program.name, sizeof program.name, "%s", name);
    snprintf(program.description, sizeof program.description, "%s",
             description ? description : "a program");
    snprintf(program.numerics, sizeof program.numerics, "%s", numerics ? numerics : "");
    for (int d = 0; d < 3; d++)
        program.dtypes[d] =
            dtypes && text_has_word(dtypes, ' ', dtype_names[d], strlen(dtype_names[d]));
    program.backend.f16_bf16 =
        program.dtypes[POSENC_DTYPE_F16] || program.dtypes[POSENC_DTYPE_BF16];
    program.backend.fused = fused && strcmp(fused, "1") == 0;
    set_kernels(kernels);
    return true;
}

/* Receives the answer to a hello. On a socket, answers to an earlier process may come first. */
static bool receive_hello(struct message *hello, bool skips, char error[NOTATION_ERROR])
{
    enum { MOST_BYTES = 1 << 30 };
    char reason[MESSAGE_TEXT] = "";
    for (;;) {
        const enum message_status status =
            message_read(hello, connection_receive, &program.connection, MOST_BYTES, reason);
        if (status == MESSAGE_CUT)
            return notation_fail(error, "%s%s%s, at its hello", program.connection.reason,
                                 *reason ? " " : "", reason);
        if (status != MESSAGE_WHOLE && !(skips && status == MESSAGE_WRONG))
            return notation_fail(error, "its hello cannot be read: %s", reason);
        if (status == MESSAGE_WHOLE && message_text(hello, "hello"))
            return true;
        message_free(hello);
        if (!skips)
            return notation_fail(error, "its first message is no hello");
    }
}

const struct posenc_backend *program_start(const char *command, double limit_s,
                                           char error[NOTATION_ERROR])
{
    const struct message first = { .metadata = json_pack("{s:s}", "hello", "1") };
    struct message hello = { .n = 0 };
    program.ask = ask_connection;
    bool ready = false;
    if (!connection_open(&program.connection, command, limit_s) || !send_message(&first))
        notation_fail(error, "%s", program.connection.reason);
    else
        ready = receive_hello(&hello, connection_is_socket(command), error) &&
                read_hello(&hello, error);
    json_decref(first.metadata);
    message_free(&hello);
    return ready ? &program.backend : NULL;
}

bool program_has_started(void)
{
    return program.connection.in >= 0 && !program.connection.lacks_command;
}

void program_stop(void)
{
    if (program.ask == ask_connection && !connection_close(&program.connection))
        lose("%s", program.connection.reason);
    program.ask = NULL;
}

/* ---- Files ---- */

static const struct posenc_backend *use_files(exchange *ask, const char *name,
                                              const char *description)
{
    program.ask = ask;
    program.max_position = INT64_MAX;
    for (int d = 0; d < 3; d++)
        program.dtypes[d] = true;
    program.backend.f16_bf16 = true;
    snprintf(program.name, sizeof program.name, "%s", name);
    snprintf(program.description, sizeof program.description, "%s", description);
    set_kernels(NULL);
    return &program.backend;
}

const struct posenc_backend *program_write_prompts(const char *folder)
{
    files_use(folder);
    return use_files(files_write_prompt, "prompts", "files of prompts");
}

const struct posenc_backend *program_read_answers(const char *folder)
{
    files_use(folder);
    return use_files(files_read_answer, "answers", "files of answers");
}
