/*
 * A rotation in place over as many bytes as asked for, by the library's default backend: what a doctor
 * times.  Its angles are 0, so that its numbers stay what they are, however often it is called.
 */
#ifndef POSENC_ROTATION_H
#define POSENC_ROTATION_H

#include <posenc.h>

enum rotation_pages { PAGES_AS_EVER, PAGES_SMALL, PAGES_HUGE };

struct rotation {
    struct posenc_rope_args args;
    void *x, *angles, *mapped; /* mapped: if pages are chosen */
    size_t bytes, mapped_bytes;
    int64_t calls; /* that a sample takes */
};

/* Returns false if there is no memory, or there are no such pages; nothing is to be freed then. */
bool rotation_make(struct rotation *rotation, size_t bytes, enum rotation_pages pages);
void rotation_free(struct rotation *rotation);

void rotation_call(const struct rotation *rotation);
/* Returns the seconds of one call, over as many as a sample takes. */
double rotation_seconds(const struct rotation *rotation);

#endif
