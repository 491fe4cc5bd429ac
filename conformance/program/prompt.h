/*
 * Prompts: the arguments of a kernel's call in one canonical form, which hides strides, batches of tokens, places and
 * transposes. A call of rope_half with x [batch 2, tokens 3, heads 4, head_dim 8] has the tensors x [6, 4, 8], cos [6,
 * 4] and sin [6, 4]. docs/protocol.md lists the tensors and parameters of each kernel.
 */
#ifndef POSENC_PROMPT_H
#define POSENC_PROMPT_H

#include "conformance/problem/signature.h"
#include "message.h"

enum { PROMPT_CASE = 96 };

/* An output of a prompt, and the tensor of the call that receives it from channel `skipped` on. */
struct prompt_output {
    struct message_tensor form; /* without data */
    struct posenc_tensor to;
    int64_t skipped;
};

struct prompt {
    enum posenc_kernel kernel;
    const void *args; /* struct posenc_<signature>_args, as a backend gets them */
    struct problem problem;
    struct message message; /* tensors, and metadata but the number */
    int n_outputs;
    struct prompt_output outputs[2];
    int64_t farthest; /* largest |position|, or 0 */
    struct arena arena;
};

/* Makes a prompt of a call. `problem` has the parameters that do not follow from the arguments. Returns false if out of
 * memory; prompt_free() frees all the same. */
bool prompt_make(struct prompt *prompt, enum posenc_kernel kernel, const void *args,
                 const struct problem *problem, const char *case_id);
void prompt_free(struct prompt *prompt);

/* Writes the outputs of an answer to the call's tensors. Returns false and a reason if a tensor is missing,
 * superfluous, or has another dtype or shape. */
bool prompt_accept(const struct prompt *prompt, const struct message *answer,
                   char reason[MESSAGE_TEXT]);

/* Makes the answer that has the outputs that are in the call's tensors. message_free() frees it. */
bool prompt_answer(struct prompt *prompt, struct message *answer);

/* Returns a parameter of a problem as JSON: a number, a text, a boolean or a list of these. NULL: not finite. */
json_t *prompt_parameter(const struct field *field, const struct problem *problem);

/* ---- Exchange of prompts and answers: by a connection in program.c, by files in files.c ---- */

/* Obtains the answer, which the caller frees. Returns false and a reason if it cannot be read. */
typedef bool exchange(struct prompt *prompt, struct message *answer, char reason[MESSAGE_TEXT]);

/* Sets the folder of prompts/, expected/, answers/ and prompts.jsonl. */
void files_use(const char *folder);
/* Counts the prompts of a case anew. */
void files_begin_case(void);
/* Writes a prompt and the expected outputs, which are its answer. */
exchange files_write_prompt;
/* Reads the answer. Without one, the answer declines. */
exchange files_read_answer;

#endif
