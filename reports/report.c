/*
 * The sections in their order, for each machine; see report.h.
 */
#include "report.h"
#include "estimate.h"

static void (*const sections[])(struct node *, const struct results *,
                                const struct render_options *) = {
#define SECTION_OF(name) section_##name,
#include "sections.def"
#undef SECTION_OF
};

static bool add_machine(struct node *into, const json_t *records, size_t machine,
                        size_t machines, const struct render_options *options)
{
    struct results r;
    if (results_make(records, machine, &r))
        return false;
    results_narrow(&r);
    if (machines > 1)
        into = add_section(into, EVERYWHERE, "Machine %zu: %s", machine + 1,
                           record_text(r.env, "env_id"));
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sections[i](into, &r, options);
    results_free(&r);
    return true;
}

struct node *report_make(const json_t *records, const struct render_options *options)
{
    static const struct render_options none = { .color = -1 };
    struct node *root = document_make("posenc report");
    size_t machines = estimates_only(records) ? 0 : results_machines(records);
    bool fine = root != NULL;
    if (fine && machines > 1)
        section_across(root, records);
    for (size_t m = 0; fine && m < machines; m++)
        fine = add_machine(root, records, m, machines, options ? options : &none);
    if (fine)
        section_estimates(root, records);
    if (fine && !document_failed(root))
        return root;
    document_free(root);
    return NULL;
}
