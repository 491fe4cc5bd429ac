/*
 * What a step of a model spends in positional encoding over all of its layers, by backend, and of what
 * that is the sum.
 */
#include "reports/cost.h"
#include "reports/report.h"
#include "reports/show.h"

#include <math.h>
#include <string.h>

static void add_cost_cell(const struct cost *cost, struct table *table)
{
    double width = fmax(cost->hi - cost->ns, cost->ns - cost->lo) / cost->ns;
    if (cost->missing)
        table_cell(table, "-");
    else if (cost->noisy)
        table_cell(table, "%s noisy", show_time(cost->ns));
    else
        table_cell(table, "%s ±%.0f %%", show_time(cost->ns), 100.0 * width);
}

/* A row, where a backend served one of the steps at least.  Where the default is one backend for all
 * kernels, its own row says so. */
static void add_costs(const struct results *r, const json_t *model, const struct step *steps,
                      size_t n, const char *backend, struct table *table)
{
    struct cost costs[STEPS];
    const char *standard = cost_of(r, model, &steps[0], NULL).backend;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        costs[i] = cost_of(r, model, &steps[i], backend);
        any |= !costs[i].missing;
    }
    if (!any || (!backend && standard && *standard))
        return;
    if (!backend)
        table_cell(table, "default");
    else
        table_cell(table, "%s%s", backend,
                   standard && strcmp(standard, backend) == 0 ? " (default)" : "");
    for (size_t i = 0; i < n; i++)
        add_cost_cell(&costs[i], table);
}

/* "decode: 32 x 320 ns (rope_half) + 392 ns (rope_table)", with the backends that serve by default. */
static void add_sum(struct node *section, const struct results *r, const json_t *model,
                    const struct step *step, const char *name)
{
    struct cost_call calls[COST_CALLS];
    size_t n = cost_calls(r, model, step, NULL, calls), at = 0;
    char text[COST_CALLS * 96] = "";
    for (size_t i = 0; i < n; i++) {
        const char *sign = i ? " + " : "";
        if (!calls[i].row)
            return;
        if (calls[i].times > 1.0)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%.0f x %s (`%.40s`)", sign,
                                   calls[i].times, show_time(calls[i].row->median),
                                   calls[i].row->kernel);
        else
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s (`%.40s`)", sign,
                                   show_time(calls[i].row->median), calls[i].row->kernel);
    }
    add_text(section, ITEM, EVERYWHERE, "%s = %s", name, text);
}

void section_cost(struct node *into, const struct results *r, const json_t *model)
{
    struct step steps[STEPS];
    char head[1024] = "backend", name[STEP_TEXT];
    size_t n = cost_steps(r, model, steps), at = strlen(head);
    bool known = n > 0;
    for (size_t i = 0; i < n; i++) {
        known = known && cost_of(r, model, &steps[i], NULL).known;
        at += (size_t)snprintf(head + at, sizeof head - at, "|>%s",
                               cost_step_name(&steps[i], steps, n, name));
    }
    if (n == 0)
        return;
    struct node *section =
        add_section(into, EVERYWHERE, "What a token or a prompt costs over all layers");
    if (!known) {
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "Its configuration does not say in how many layers: not added up.");
        return;
    }
    struct table *table = add_table(section, EVERYWHERE, head);
    add_costs(r, model, steps, n, NULL, table);
    for (size_t b = 0; b < r->n_backends; b++)
        add_costs(r, model, steps, n, r->backends[b].id, table);
    for (size_t i = 0; i < n; i++)
        if (!cost_of(r, model, &steps[i], NULL).missing) /* the default is wrong there */
            add_sum(section, r, model, &steps[i], cost_step_name(&steps[i], steps, n, name));
    add_text(section, PARAGRAPH, EVERYWHERE,
             "Assumed: one thread, one call after the other, each as fast as when it is timed "
             "alone; tables of angles made once a step and shared by all layers.  A model that "
             "keeps them from step to step saves that part.");
}
