/* Encodes and reads messages (see message.h). */
#include "message.h"

#include <stdarg.h>
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
    static const char *const known[] = { "F64", "F32", "F16", "BF16", "I64", "I32",
                                         "I16", "I8",  "U64", "U32",  "U16", "U8" };
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
    unsigned char *whole = header ? malloc(*bytes) : NULL, *at = whole + LENGTH_BYTES + length;
    if (whole) {
        for (int i = 0; i < LENGTH_BYTES; i++)
            whole[i] = (unsigned char)(length >> (8 * i));
        memcpy(whole + LENGTH_BYTES, header, length);
        for (size_t i = 0; i < message->n; at += message->tensors[i++].bytes)
            if (message->tensors[i].bytes > 0)
                memcpy(at, message->tensors[i].data, message->tensors[i].bytes);
    }
    free(header);
    return whole;
}

/* ---- Reading ---- */

/* Writes a reason; returns `status`. */
__attribute__((format(printf, 3, 4))) static enum message_status
give_reason(char reason[MESSAGE_TEXT], enum message_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, MESSAGE_TEXT, format, arguments);
    va_end(arguments);
    return status;
}

/* Reads dtype and shape of a tensor. */
static bool read_tensor(const char *name, const json_t *entry, struct message_tensor *tensor)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape"), *size;
    int64_t sizes[MESSAGE_DIMS];
    uint64_t elements = 1;
    size_t i;
    if (!dtype || item_bytes(dtype) == 0 || !json_is_array(shape) ||
        json_array_size(shape) > MESSAGE_DIMS)
        return false;
    json_array_foreach(shape, i, size)
    {
        sizes[i] = json_integer_value(size);
        if (!json_is_integer(size) || sizes[i] < 0 || sizes[i] > UINT32_MAX ||
            __builtin_mul_overflow(elements, (uint64_t)sizes[i], &elements) ||
            elements > SIZE_MAX / 16)
            return false;
    }
    *tensor = message_tensor(name, dtype, (int)json_array_size(shape), sizes);
    return true;
}

/* Reads an entry of the header. Tensors may come in any order, and must not overlap. */
static enum message_status read_entry(struct message *message, const char *name,
                                      const json_t *entry, uint64_t from, uint64_t to,
                                      char reason[MESSAGE_TEXT])
{
    if (message->n == MESSAGE_TENSORS)
        return give_reason(reason, MESSAGE_WRONG, "it has more than %d tensors",
                           MESSAGE_TENSORS);
    struct message_tensor *tensor = &message->tensors[message->n];
    if (!read_tensor(name, entry, tensor) || tensor->bytes != to - from)
        return give_reason(reason, MESSAGE_WRONG,
                           "dtype, shape and data_offsets of its tensor '%.40s' do not agree",
                           name);
    tensor->offset = from;
    for (size_t i = 0; i < message->n; i++) {
        const struct message_tensor *other = &message->tensors[i];
        if (from < other->offset + other->bytes && other->offset < to)
            return give_reason(reason, MESSAGE_WRONG, "its tensors '%s' and '%s' overlap",
                               other->name, tensor->name);
    }
    message->n++;
    return MESSAGE_WHOLE;
}

/* Reads all entries of the header, and sets *total to the bytes that follow it. They do follow if the header is wrong,
 * unless it is lost. */
static enum message_status read_header(struct message *message, json_t *header, uint64_t *total,
                                       char reason[MESSAGE_TEXT])
{
    enum message_status status = MESSAGE_WHOLE;
    uint64_t covered = 0;
    const char *name;
    json_t *entry;
    *total = 0;
    json_object_foreach(header, name, entry)
    {
        json_int_t from, to;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (json_unpack(json_object_get(entry, "data_offsets"), "[I,I!]", &from, &to) != 0 ||
            from < 0 || to < from)
            return give_reason(reason, MESSAGE_LOST,
                               "data_offsets of a tensor are no two offsets in order");
        *total = (uint64_t)to > *total ? (uint64_t)to : *total;
        covered += (uint64_t)(to - from);
        if (status == MESSAGE_WHOLE)
            status = read_entry(message, name, entry, (uint64_t)from, (uint64_t)to, reason);
    }
    if (status == MESSAGE_WHOLE && covered != *total)
        return give_reason(reason, MESSAGE_WRONG, "its tensors leave gaps between their data");
    return status;
}

/* Returns the metadata if it is an object of texts, or NULL. */
static json_t *read_metadata(json_t *header)
{
    json_t *metadata = json_object_get(header, "__metadata__"), *value;
    const char *name;
    if (!json_is_object(metadata))
        return NULL;
    json_object_foreach(metadata, name, value) if (!json_is_string(value)) return NULL;
    return json_incref(metadata);
}

static enum message_status read_data(struct message *message, json_t *header,
                                     message_source *source, void *user, size_t most_bytes,
                                     char reason[MESSAGE_TEXT])
{
    uint64_t total;
    const enum message_status status = read_header(message, header, &total, reason);
    if (status == MESSAGE_LOST)
        return status;
    if (total > most_bytes)
        return give_reason(reason, MESSAGE_LOST,
                           "its header announces %llu bytes of tensors, expected at most %zu",
                           (unsigned long long)total, most_bytes);
    message->buffer = malloc(total + 1);
    if (!message->buffer)
        return give_reason(reason, MESSAGE_LOST, "out of memory");
    if (!source(user, message->buffer, total))
        return MESSAGE_CUT;
    for (size_t i = 0; i < message->n; i++)
        message->tensors[i].data =
            (const unsigned char *)message->buffer + message->tensors[i].offset;
    message->metadata = read_metadata(header);
    if (!message->metadata)
        return give_reason(reason, MESSAGE_WRONG,
                           "its __metadata__ is no object whose values are strings");
    return status;
}

enum message_status message_read(struct message *message, message_source *source, void *user,
                                 size_t most_bytes, char reason[MESSAGE_TEXT])
{
    unsigned char bytes[LENGTH_BYTES];
    uint64_t length = 0;
    *message = (struct message){ .n = 0 };
    if (!source(user, bytes, sizeof bytes))
        return MESSAGE_CUT;
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | bytes[i];
    if (length > MOST_HEADER)
        return give_reason(reason, MESSAGE_LOST,
                           "its first 8 bytes announce a header of %llu bytes, expected at "
                           "most %d",
                           (unsigned long long)length, MOST_HEADER);
    char *text = malloc(length + 1);
    if (!text)
        return give_reason(reason, MESSAGE_LOST, "out of memory");
    enum message_status status = MESSAGE_CUT;
    if (source(user, text, length)) {
        json_error_t error;
        json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        status = json_is_object(header)
                     ? read_data(message, header, source, user, most_bytes, reason)
                     : give_reason(reason, MESSAGE_LOST,
                                   "its header is no JSON object: %.60s at byte %d",
                                   header ? "another value" : error.text,
                                   header ? 0 : error.position);
        json_decref(header);
    }
    free(text);
    return status;
}
