/*
 * A team of threads that does one piece of work at a time, each member its own share.  Members wait awake
 * for a moment, then asleep: starting them costs a microsecond or so, which is part of what calling a
 * kernel from several threads costs.
 */
#ifndef POSENC_TEAM_H
#define POSENC_TEAM_H

struct team;
typedef void team_work(void *user, int member, int n);

/* Starts n - 1 threads; the calling thread is member 0.  Returns NULL if a thread or memory is refused. */
struct team *team_create(int n);
void team_destroy(struct team *team);

/* Calls work(user, member, n) on every member; returns when all have returned. */
void team_run(struct team *team, team_work *work, void *user);

#endif
