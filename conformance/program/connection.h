/*
 * A connection to a program that answers prompts: its standard input and output, or a socket that this process
 * inherited. Messages alternate: one to the program, one from it.
 */
#ifndef POSENC_CONNECTION_H
#define POSENC_CONNECTION_H

#include "message.h"

#include <sys/types.h>

struct connection {
    pid_t pid;                 /* of the shell that runs the command; 0 for a socket */
    int in, out;               /* from the program and to it; -1: not open */
    bool ended;                /* the shell has ended */
    int status;                /* of waitpid(), if it has */
    bool lacks_command;        /* the shell could not run it */
    double limit_s;            /* for one message in either direction */
    char reason[MESSAGE_TEXT]; /* of a failure: "the program ended by exit(3)" */
};

/* Returns true for "fd:N", an inherited socket. */
bool connection_is_socket(const char *command);

/* Starts `command` by sh -c, or uses the socket N of "fd:N". Returns false and sets connection->reason on failure. */
bool connection_open(struct connection *connection, const char *command, double limit_s);

/* Return false, or fewer bytes, and set the reason, if the program ended, or takes longer than the limit. The second is
 * a message_source, whose `user` is the connection. */
bool connection_send(struct connection *connection, const void *data, size_t n);
size_t connection_receive(void *user, void *to, size_t n);

/* Closes the program's input, waits for its end, and requires that it sent nothing more. Returns false and sets the
 * reason on failure. A socket stays open. */
bool connection_close(struct connection *connection);

#endif
