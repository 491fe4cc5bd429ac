/* Fuzzes the reader of messages from programs (docs/protocol.md). */
#include "conformance/program/message.h"
#include "fuzz.h"

enum {
    MOST_TENSOR_BYTES = 1 << 16
}; /* so small that inputs reach the rejection of larger tensors */

/* A stream in memory. */
struct source {
    const char *next;
    size_t left;
};

/* Reads up to n bytes, as message_read() needs it. Returns their number. */
static size_t read_source(void *user, void *to, size_t n)
{
    struct source *source = user;
    const size_t got = n < source->left ? n : source->left;
    if (got > 0)
        memcpy(to, source->next, got);
    source->next += got;
    source->left -= got;
    return got;
}

/* Describes the tensors, reads their bytes, and encodes the message again. */
static void use_message(const struct message *message)
{
    volatile unsigned sum = 0; /* keeps the compiler from dropping the reads */
    char text[MESSAGE_TEXT];
    size_t bytes;
    for (size_t i = 0; i < message->n; i++) {
        message_describe(&message->tensors[i], text);
        for (size_t k = 0; k < message->tensors[i].bytes; k++)
            sum = sum + ((const unsigned char *)message->tensors[i].data)[k];
    }
    free(message_encode(message, &bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes;
    char reason[MESSAGE_TEXT] = "", *file = fuzz_safetensors(data, size, &bytes);
    struct source source = { file, bytes };
    struct message message;
    const enum message_status status =
        message_read(&message, read_source, &source, MOST_TENSOR_BYTES, reason);
    if (status == MESSAGE_WHOLE)
        use_message(&message);
    else if (status != MESSAGE_CUT && reason[0] == '\0')
        abort(); /* a rejection needs a reason; for a cut message, its source has it */
    message_free(&message);
    free(file);
    return 0;
}
