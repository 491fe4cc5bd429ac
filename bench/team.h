/*
 * A team of threads that does one piece of work at a time, each member its own share.
 * Members wait awake for a moment, then asleep: starting them costs a microsecond or so, which
 * is part of what calling a kernel from several threads costs.
 */
#ifndef POSENC_TEAM_H
#define POSENC_TEAM_H

struct team;
typedef void team_work(void *user, int member, int n);

/* n >= 1, the calling thread being member 0.  NULL when a thread or memory was refused. */
struct team *team_create(int n);
void team_destroy(struct team *team);

/* Calls work(user, member, n) on every member; returns when all have returned. */
void team_run(struct team *team, team_work *work, void *user);

#endif
