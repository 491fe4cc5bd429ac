/* Encodes and reads messages (see message.h). */
#include "message.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MOST_HEADER = 1 << 20 };

void message_free(struct message *message)
{
    json_decref(message->metadata);
    free(message->buffer);
    *message = (struct message){ .n = 0 };
}

const char *message_text(const struct message *message, const char *member)
{
    return json_string_value(json_object_get(message->metadata, member));
}

const struct message_tensor *message_find(const struct message *message, const char *name)
{
    for (size_t i = 0; i < message->n; i++)
        if (strcmp(message->tensors[i].name, name) == 0)
            return &message->tensors[i];
    return NULL;
}

void message_describe(const struct message_tensor *tensor, char text[MESSAGE_TEXT])
{
    int at = snprintf(text, MESSAGE_TEXT, "%s [", tensor->dtype);
    for (int i = 0; i < tensor->rank; i++)
        at += snprintf(text + at, (size_t)(MESSAGE_TEXT - at), "%s%lld", i > 0 ? ", " : "",
                       (long long)tensor->shape[i]);
    snprintf(text + at, (size_t)(MESSAGE_TEXT - at), "]");
}

/* ---- Encoding ---- */

/* Returns the bytes of an element: the digits in the name of a type are its bits. 0: unknown. */
static size_t item_bytes(const char *dtype)
{
    static const char *const known[] = { "F64", "F32", "F16", "BF16", "I64", "I32" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(dtype, known[i]) == 0)
            return strtoul(dtype + strcspn(dtype, "123456789"), NULL, 10) / 8;
    return 0;
}

struct message_tensor message_tensor(const char *name, const char *dtype, int rank,
                                     const int64_t *shape)
{
    struct message_tensor tensor = { .rank = rank, .bytes = item_bytes(dtype) };
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    snprintf(tensor.dtype, sizeof tensor.dtype, "%s", dtype);
    for (int i = 0; i < rank; i++) {
        tensor.shape[i] = shape[i];
        tensor.bytes *= (size_t)shape[i];
    }
    return tensor;
}

json_t *message_shape(const struct message_tensor *tensor)
{
    json_t *shape = json_array();
    for (int d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer(tensor->shape[d]));
    return shape;
}

/* Returns the header as text, padded so that the data are aligned; NULL if out of memory. */
static char *encode_header(const struct message *message, size_t *length)
{
    json_t *header = json_object();
    size_t offset = 0;
    json_object_set(header, "__metadata__", message->metadata);
    for (size_t i = 0; i < message->n; i++) {
        const struct message_tensor *tensor = &message->tensors[i];
        json_object_set_new(header, tensor->name,
                            json_pack("{s:s,s:o,s:[I,I]}", "dtype", tensor->dtype, "shape",
                                      message_shape(tensor), "data_offsets", (json_int_t)offset,
                                      (json_int_t)(offset + tensor->bytes)));
        offset += tensor->bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT), *padded = NULL;
    json_decref(header);
    if (text) {
        const size_t n = strlen(text);
        *length = (n + LENGTH_BYTES - 1) / LENGTH_BYTES * LENGTH_BYTES;
        padded = malloc(*length);
        if (padded)
            memcpy(memset(padded, ' ', *length), text, n);
        free(text);
    }
    return padded;
}

void *message_encode(const struct message *message, size_t *bytes)
{
    size_t length = 0, data = 0;
    char *header = encode_header(message, &length);
    for (size_t i = 0; i < message->n; i++)
        data += message->tensors[i].bytes;
    *bytes = LENGTH_BYTES + length + data;
    unsigned char *whole = header ? malloc(*bytes) : NULL, *to = whole;
    if (whole) {
        for (int i = 0; i < LENGTH_BYTES; i++)
            *to++ = (unsigned char)(length >> (8 * i));
        memcpy(to, header, length);
        to += length;
        for (size_t i = 0; i < message->n; to += message->tensors[i++].bytes)
            if (message->tensors[i].bytes > 0)
                memcpy(to, message->tensors[i].data, message->tensors[i].bytes);
    }
    free(header);
    return whole;
}

/* ---- Reading ---- */

/* Rejects a value of the header, which is missing if it is NULL. Returns false. */
static bool reject_value(char reason[MESSAGE_TEXT], const char *member, const char *name,
                         const json_t *value, const char *expected)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    notation_fail(reason, "%s '%.40s' is %.60s: expected %s", member, name,
                  text ? text : "missing", expected);
    free(text);
    return false;
}

/* Reads a shape. Returns false if it is none, or has too many elements. */
static bool read_shape(const json_t *shape, int64_t sizes[MESSAGE_DIMS])
{
    const json_t *size;
    uint64_t elements = 1;
    size_t i;
    if (!json_is_array(shape) || json_array_size(shape) > MESSAGE_DIMS)
        return false;
    json_array_foreach(shape, i, size)
    {
        sizes[i] = json_integer_value(size);
        if (!json_is_integer(size) || sizes[i] < 0 || sizes[i] > UINT32_MAX ||
            __builtin_mul_overflow(elements, (uint64_t)sizes[i], &elements) ||
            elements > SIZE_MAX / 16)
            return false;
    }
    return true;
}

/* Reads the place of a tensor's data. */
static bool read_offsets(const char *name, json_t *entry, uint64_t *from, uint64_t *to,
                         char reason[MESSAGE_TEXT])
{
    json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t first, end;
    if (!json_is_object(entry))
        return reject_value(reason, "its tensor", name, entry,
                            "an object with dtype, shape and data_offsets");
    if (json_unpack(offsets, "[I,I!]", &first, &end) != 0 || first < 0 || end < first)
        return reject_value(reason, "data_offsets of its tensor", name, offsets,
                            "two integers of at least 0 in order");
    *from = (uint64_t)first;
    *to = (uint64_t)end;
    return true;
}

/* Reads a tensor's entry of the header. Tensors may come in any order, and must not overlap. */
static bool read_entry(struct message *message, const char *name, const json_t *entry,
                       uint64_t from, uint64_t to, char reason[MESSAGE_TEXT])
{
    const json_t *type = json_object_get(entry, "dtype"),
                 *shape = json_object_get(entry, "shape");
    const char *dtype = json_string_value(type);
    int64_t sizes[MESSAGE_DIMS];
    char text[MESSAGE_TEXT];
    if (message->n == MESSAGE_TENSORS)
        return notation_fail(reason, "it has more than %d tensors", MESSAGE_TENSORS);
    if (!dtype || item_bytes(dtype) == 0)
        return reject_value(reason, "dtype of its tensor", name, type,
                            "one of F64, F32, F16, BF16, I64, I32");
    if (!read_shape(shape, sizes))
        return reject_value(reason, "shape of its tensor", name, shape,
                            "at most 4 integers from 0 to 4294967295");
    struct message_tensor *tensor = &message->tensors[message->n];
    *tensor = message_tensor(name, dtype, (int)json_array_size(shape), sizes);
    tensor->offset = from;
    message_describe(tensor, text);
    if (tensor->bytes != to - from)
        return notation_fail(reason,
                             "data_offsets of its tensor '%.40s' are [%llu, %llu]: expected "
                             "%zu bytes between them for %.60s",
                             name, (unsigned long long)from, (unsigned long long)to,
                             tensor->bytes, text);
    for (size_t i = 0; i < message->n; i++) {
        const struct message_tensor *other = &message->tensors[i];
        if (from < other->offset + other->bytes && other->offset < to)
            return notation_fail(reason, "its tensors '%s' and '%s' overlap", other->name,
                                 tensor->name);
    }
    message->n++;
    return true;
}

/* Reads the entries of all tensors, and sets *total to the bytes that follow the header. They also follow a wrong one,
 * unless it is lost. */
static enum message_status read_entries(struct message *message, json_t *header,
                                        uint64_t *total, char reason[MESSAGE_TEXT])
{
    uint64_t covered = 0, from = 0, to = 0;
    const char *name;
    json_t *entry;
    bool good = true;
    *total = 0;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!read_offsets(name, entry, &from, &to, reason))
            return MESSAGE_LOST;
        *total = to > *total ? to : *total;
        covered += to - from;
        good = good && read_entry(message, name, entry, from, to, reason);
    }
    if (good && covered != *total)
        good =
            notation_fail(reason, "its tensors leave %llu of %llu bytes uncovered",
                          (unsigned long long)(*total - covered), (unsigned long long)*total);
    return good ? MESSAGE_WHOLE : MESSAGE_WRONG;
}

/* Sets the metadata if they are an object of texts. */
static bool read_metadata(struct message *message, json_t *header, char reason[MESSAGE_TEXT])
{
    json_t *metadata = json_object_get(header, "__metadata__"), *value;
    const char *name;
    if (!json_is_object(metadata))
        return notation_fail(reason,
                             "its __metadata__ %s: expected an object whose values are strings",
                             metadata ? "is no object" : "is missing");
    json_object_foreach(metadata, name, value)
    {
        if (!json_is_string(value))
            return reject_value(reason, "the member of __metadata__", name, value, "a string");
    }
    message->metadata = json_incref(metadata);
    return true;
}

/* The message that is read, its source, and the arguments of message_read(). */
struct message_reader {
    struct message *message;
    message_source *source;
    void *user;
    size_t most_bytes;
    char *reason;
};

/* Reads n bytes from the source. Otherwise writes how many of them came, unless none of the message did. Its length is
 * no `part`. */
static bool take(const struct message_reader *reader, void *to, size_t n, const char *part)
{
    const size_t got = reader->source(reader->user, to, n);
    if (got < n && (got > 0 || part))
        notation_fail(reader->reason, "after %zu of %zu bytes of its %s", got, n,
                      part ? part : "length");
    return got == n;
}

/* Reads what follows the header. */
static enum message_status read_data(const struct message_reader *reader, json_t *header)
{
    struct message *message = reader->message;
    uint64_t total;
    const enum message_status status = read_entries(message, header, &total, reader->reason);
    if (status == MESSAGE_LOST)
        return status;
    if (total > reader->most_bytes) {
        notation_fail(reader->reason,
                      "its header announces %llu bytes of tensors, expected at most %zu",
                      (unsigned long long)total, reader->most_bytes);
        return MESSAGE_LOST;
    }
    message->buffer = malloc(total + 1);
    if (!message->buffer) {
        notation_fail(reader->reason, "out of memory");
        return MESSAGE_LOST;
    }
    if (!take(reader, message->buffer, total, "data"))
        return MESSAGE_CUT;
    for (size_t i = 0; i < message->n; i++)
        message->tensors[i].data =
            (const unsigned char *)message->buffer + message->tensors[i].offset;
    if (status == MESSAGE_WHOLE && !read_metadata(message, header, reader->reason))
        return MESSAGE_WRONG;
    return status;
}

/* Parses the header, and reads what follows it. */
static enum message_status read_rest(const struct message_reader *reader, const char *text,
                                     size_t length)
{
    json_error_t error;
    enum message_status status = MESSAGE_LOST;
    json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(header))
        status = read_data(reader, header);
    else if (text[strspn(text, " \t\r\n")] != '{')
        notation_fail(reader->reason,
                      "its header is no JSON object: expected '{' at its start");
    else
        notation_fail(reader->reason, "its header is no JSON object: %.60s at byte %d",
                      error.text, error.position);
    json_decref(header);
    return status;
}

enum message_status message_read(struct message *message, message_source *source, void *user,
                                 size_t most_bytes, char reason[MESSAGE_TEXT])
{
    const struct message_reader reader = { message, source, user, most_bytes, reason };
    unsigned char bytes[LENGTH_BYTES];
    uint64_t length = 0;
    *message = (struct message){ .n = 0 };
    reason[0] = '\0';
    if (!take(&reader, bytes, sizeof bytes, NULL))
        return MESSAGE_CUT;
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | bytes[i];
    if (length > MOST_HEADER) {
        notation_fail(reason,
                      "its first 8 bytes announce a header of %llu bytes, expected at most %d",
                      (unsigned long long)length, MOST_HEADER);
        return MESSAGE_LOST;
    }
    char *text = calloc(length + 1, 1);
    enum message_status status = MESSAGE_LOST;
    if (!text)
        notation_fail(reason, "out of memory");
    else if (!take(&reader, text, length, "header"))
        status = MESSAGE_CUT;
    else
        status = read_rest(&reader, text, length);
    free(text);
    return status;
}
