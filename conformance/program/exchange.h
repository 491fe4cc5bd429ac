/* Functions that obtain the answer to a prompt: program.c by a connection, files.c by files. */
#ifndef POSENC_EXCHANGE_H
#define POSENC_EXCHANGE_H

#include "prompt.h"

/* Obtains the answer, which the caller frees. Writes a reason unless it is whole. */
typedef enum message_status exchange(struct prompt *prompt, struct message *answer,
                                     char reason[MESSAGE_TEXT]);

/* Sets the folder of prompts/, expected/, answers/ and prompts.jsonl. */
void files_use(const char *folder);
/* Counts the prompts of a case anew. */
void files_begin_case(void);
/* Writes a prompt and the expected outputs, which are its answer. */
exchange files_write_prompt;
/* Reads the answer. Without one, the answer declines. */
exchange files_read_answer;

#endif
