/*
 * Where a configuration is: a file, a folder that has one, or the local cache of Hugging Face's hub.
 */
#ifndef POSENC_MODEL_PLACE_H
#define POSENC_MODEL_PLACE_H

#include "model.h"

enum { PLACE_PATH = 4096 };

/* The path of the file that `text` means, with a slash in it:
 *
 *     a file          itself
 *     a folder        its config.json, else its params.json, else the only .gguf in it (of one in
 *                     several pieces the first)
 *     org/name        where no such path exists: the folder of refs/main in the hub's local cache,
 *                     $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
 *                     ~/.cache/huggingface/hub.  No network is used
 *
 * 0, with a sentence in `said` where it was not a file, else ""; or -1 with a message of what
 * follows "text: ". */
int model_place(const char *text, char path[PLACE_PATH], char said[MODEL_NOTES],
                char error[MODEL_ERROR]);

#endif
