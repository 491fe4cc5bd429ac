/*
 * Tests of the built-in models: each loads, and the library takes each of its problems.  Tests
 * of the names by which models are found, and of configurations that no text editor wrote (NUL
 * bytes, a hundred thousand brackets).  What becomes of ordinary configurations is in claims/.
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A problem may be large (BLOOM's scores are 117 MB): few tokens or queries say as
 * much here. */
static struct problem small(struct problem p)
{
    if (p.tokens > 8)
        p.tokens = 8;
    if (p.queries > 4)
        p.queries = 4;
    if (p.relative == RELATIVE_TRANSFORMER_XL) /* whose queries are the last of the keys */
        p.query_offset = p.keys - p.queries;
    return p;
}

static bool valid(const struct problem *problem)
{
    struct problem p = small(*problem);
    struct call call;
    const struct posenc_backend *backend = posenc_backend_find("scalar");
    enum posenc_status status = call_create(&call, &p, &memory_plain);
    if (status == POSENC_OK) {
        status = call_run(&call, backend);
        call_destroy(&call);
    }
    if (status != POSENC_OK)
        printf("# %s: %s\n", posenc_kernel_name(p.kernel), posenc_status_string(status));
    return status == POSENC_OK;
}

/* Case ids are of [a-z0-9_./-] and unlike each other. */
static bool good_ids(const struct model *m)
{
    for (size_t i = 0; i < m->n_cases; i++) {
        const char *id = m->cases[i].id;
        if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_./-") != strlen(id))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(id, m->cases[j].id) == 0)
                return false;
    }
    return true;
}

static bool reaches_the_end(const struct model *m)
{
    for (size_t i = 0; i < m->n_verify; i++) {
        const struct problem *p = &m->verify[i];
        const int64_t end =
            p->kernel == POSENC_KERNEL_learned_add ? p->rows : m->max_position_embeddings;
        if (p->first + p->tokens == end || p->keys == end)
            return true;
    }
    return false;
}

static void test_built_in(void)
{
    static struct model m;
    char error[MODEL_ERROR] = "", sentence[128];
    size_t n = 0;
    for (; model_name_at(n); n++)
        ;
    require(n >= 30, "there are thirty models or more");
    for (size_t i = 0; model_name_at(i); i++) {
        const char *name = model_name_at(i);
        bool loaded = model_by_name(name, &m, error) == 0;
        bool works = loaded && m.n_cases > 0 && m.n_verify > 0 && *m.source && *m.checked;
        for (size_t c = 0; works && c < m.n_cases; c++)
            works = valid(&m.cases[c].problem) && *m.cases[c].label;
        for (size_t v = 0; works && v < m.n_verify; v++)
            works = valid(&m.verify[v]);
        snprintf(sentence, sizeof sentence,
                 "%s loads, and the library takes each of its problems", name);
        require(works, sentence);
        snprintf(sentence, sizeof sentence,
                 "%s: ids are unique and its last position is verified", name);
        require(loaded && good_ids(&m) && reaches_the_end(&m), sentence);
        model_free(&m);
    }
}

#define LLAMA                                                                                  \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "            \
    "\"max_position_embeddings\": 100"

/* Loads a configuration that says nothing of its name, written at `path` under `folder`. */
static bool titled(const char *folder, const char *file, const char *config, const char *title,
                   const char *name)
{
    static struct model m;
    char path[256], error[MODEL_ERROR] = "";
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "w");
    bool written = out && fputs(config, out) >= 0;
    if (out)
        written = fclose(out) == 0 && written;
    bool loaded = written && model_from_config(path, &m, error) == 0;
    unlink(path);
    if (loaded && (strcmp(m.title, title) != 0 || strcmp(m.name, name) != 0))
        printf("# title '%s', name '%s'\n", m.title, m.name);
    return loaded && strcmp(m.title, title) == 0 && strcmp(m.name, name) == 0 && good_ids(&m);
}

static void test_names(void)
{
    static struct model m;
    char top[] = "/tmp/posenc-models-XXXXXX", folder[64], error[MODEL_ERROR];
    if (!mkdtemp(top)) {
        require(false, "a folder can be made");
        return;
    }
    snprintf(folder, sizeof folder, "%s/My Llama-3.1", top);
    bool made = mkdir(folder, 0700) == 0;
    require(made && titled(folder, "config.json", LLAMA "}", "My Llama-3.1", "my-llama-3.1"),
            "a config.json without a title has that of its folder");
    require(made && titled(folder, "Two.v1.json", LLAMA "}", "Two.v1", "two.v1"),
            "another file its own, without .json");
    require(made && titled(folder, "a.json", LLAMA ", \"_name_or_path\": \"org/Llama\"}",
                           "org/Llama", "a"),
            "_name_or_path says more");
    require(made && titled(folder, "b.json", LLAMA ", \"_name_or_path\": \"\"}", "b", "b"),
            "an empty one does not");
    require(made && titled(folder, "c.json", LLAMA ", \"_posenc\": {\"title\": \"A\\nB\"}}",
                           "A B", "c"),
            "a title is one line");
    require(made && chdir(folder) == 0 &&
                titled(".", "config.json", LLAMA "}", "My Llama-3.1", "my-llama-3.1"),
            "./config.json has the title of the folder it is in");
    FILE *out = made ? fopen("config.json", "w") : NULL;
    bool written = out && fputs(LLAMA "}", out) >= 0;
    require(out && fclose(out) == 0 && written && model_load("config.json", &m, error) == 0 &&
                strcmp(m.title, "My Llama-3.1") == 0,
            "config.json, too");
    unlink("config.json");
    require(chdir("/") == 0 && rmdir(folder) == 0 && rmdir(top) == 0, "and nothing is left");
}

/* A file of so many bytes is refused in these words. */
static bool refused(const void *bytes, size_t n, const char *words)
{
    static struct model m;
    char path[] = "/tmp/posenc-config-XXXXXX", error[MODEL_ERROR] = "";
    int descriptor = mkstemp(path);
    bool written = descriptor >= 0 && write(descriptor, bytes, n) == (ssize_t)n;
    if (descriptor >= 0)
        close(descriptor);
    bool named = written && model_from_config(path, &m, error) == -1 && strstr(error, words);
    unlink(path);
    return named;
}

static void test_bytes(void)
{
    enum { DEEP = 100000 };
    static char text[2 * DEEP];
    require(refused(LLAMA "}", sizeof LLAMA "}", "it holds a NUL character"),
            "a NUL byte is called that");
    size_t at = (size_t)sprintf(text, LLAMA ", \"rope_scaling\": ");
    memset(text + at, '[', DEEP);
    /* the parser gives up, and does not run out of stack */
    require(refused(text, at + DEEP, "depth"), "a hundred thousand brackets are refused");
}

int main(void)
{
    test_built_in();
    test_names();
    test_bytes();
    return tap_end();
}
