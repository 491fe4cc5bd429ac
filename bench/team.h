/* Team of threads that share the work of a call. */
#ifndef POSENC_BENCH_TEAM_H
#define POSENC_BENCH_TEAM_H

/* Team of threads that run one function at a time, each on its own share. Idle threads spin for a moment before they
 * sleep, so that a start takes about a microsecond. */
struct team;
typedef void team_work(void *user, int member, int n);

/* Starts n - 1 threads; the calling thread is member 0. Returns NULL on failure. */
struct team *team_create(int n);
void team_destroy(struct team *team);

/* Calls work(user, member, n) on every member; returns when all have returned. */
void team_run(struct team *team, team_work *work, void *user);

#endif
