/*
 * Messages of the protocol for programs (docs/protocol.md). A message is one safetensors file: the length of a JSON
 * header in 8 little-endian bytes, the header, the bytes of the tensors. The header has the length of the whole, so
 * that messages follow one another in a stream. The header of an answer to rope_half may be
 *
 *     {"__metadata__": {"prompt": "7"}, "out": {"dtype": "F32", "shape": [3, 2, 64], "data_offsets": [0, 1536]}}
 */
#ifndef POSENC_MESSAGE_H
#define POSENC_MESSAGE_H

#include "conformance/problem/fields.h"

#include <jansson.h>
#include <stdio.h>

/* The last is the size of reasons, which notation_fail() writes. */
enum {
    MESSAGE_TENSORS = 8,
    MESSAGE_DIMS = 4,
    MESSAGE_NAME = 32,
    MESSAGE_TEXT = NOTATION_ERROR
};

/* A dense tensor. */
struct message_tensor {
    char name[MESSAGE_NAME], dtype[8]; /* "F32" */
    int rank;
    int64_t shape[MESSAGE_DIMS];
    size_t bytes;
    size_t offset; /* in the data; only of a tensor that was read */
    const void *data;
};

struct message {
    json_t *metadata; /* an object of texts */
    size_t n;
    struct message_tensor tensors[MESSAGE_TENSORS];
    void *buffer; /* of a message that was read: the bytes of its tensors */
};

/* Frees the metadata and the buffer. */
void message_free(struct message *message);

/* Returns the text of a member of the metadata, or NULL. */
const char *message_text(const struct message *message, const char *member);
/* Returns the tensor of a name, or NULL. */
const struct message_tensor *message_find(const struct message *message, const char *name);
/* Writes dtype and shape: "F32 [3, 2, 64]". */
void message_describe(const struct message_tensor *tensor, char text[MESSAGE_TEXT]);

/* Returns the shape as an array of JSON. */
json_t *message_shape(const struct message_tensor *tensor);

/* Sets name, dtype, shape and bytes of a tensor. */
struct message_tensor message_tensor(const char *name, const char *dtype, int rank,
                                     const int64_t *shape);

/* Returns the message in malloc'ed memory, or NULL if out of memory. */
void *message_encode(const struct message *message, size_t *bytes);

/* A source of n bytes. Returns their number, which is less at its end; it then has a reason of its own. */
typedef size_t message_source(void *user, void *to, size_t n);

enum message_status {
    MESSAGE_WHOLE,
    MESSAGE_WRONG, /* was read to its end, and breaks the format */
    MESSAGE_LOST,  /* its end is unknown, so that nothing after it can be read */
    MESSAGE_CUT    /* the source ended and has the reason; here is how many bytes came, or "" */
};

/* Reads a message whose tensors have at most `most_bytes` bytes. Writes a reason unless it is whole. */
enum message_status message_read(struct message *message, message_source *source, void *user,
                                 size_t most_bytes, char reason[MESSAGE_TEXT]);

#endif
