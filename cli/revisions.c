/*
 * Finds, or builds and keeps, what a revision's library is: see revisions.h.
 */
#define _GNU_SOURCE
#include "revisions.h"

#include "child.h"
#include "reports/text/text.h"
#include "conformance/readers/vectors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MOST_REFS = 30, LOG_LINES = 20 };

static const char work_tree[] = "work tree";

/* What this repository's own library is made by: release, and nothing that the library does without.
 * Options that a revision does not have yet are left out. */
static const struct revision_build own_build = {
    "set -- --buildtype=release -Ddefault_library=shared\n"
    "for part in program tests bench sleef golden; do\n"
    "    grep -q \"^option('$part'\" meson_options.txt && set -- \"$@\" \"-D$part=disabled\"\n"
    "done\n"
    "meson setup revision-build \"$@\" && meson compile -C revision-build "
    "posenc:shared_library",
#ifdef __APPLE__
    "revision-build/impl/libposenc.dylib",
#else
    "revision-build/impl/libposenc.so",
#endif
};

/* A revision on its way into the cache. */
struct making {
    const struct cli *cli;
    struct revision *revision;
    struct revision_build how;
    char *top;               /* of the repository */
    char builds[PATH_BYTES]; /* the cache */
    char key[128];           /* of the build, a folder in it */
    char folder[PATH_BYTES]; /* a temporary one in it: tree, made, index, build.log */
    int lock;                /* on that */
};

static int refuse(const struct making *m, const char *why)
{
    return cli_refuse(m->cli, "--rev", m->revision->name, "%s", why);
}

static const char *join(char path[PATH_BYTES], const char *folder, const char *name)
{
    snprintf(path, PATH_BYTES, "%.*s/%s", PATH_BYTES - 300, folder, name);
    return path;
}

/* ---- Folders ---- */

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static void remove_all(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return -1;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -1;
}

static int lock_folder(const char *path)
{
    const int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0) {
        close(file);
        return -1;
    }
    return file;
}

/* What a killed process left: a temporary folder that nobody has locked, and that is not quite new. */
static void sweep(const char *builds)
{
    char path[PATH_BYTES];
    struct stat s;
    DIR *list = opendir(builds);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, ".making-", 8) != 0 ||
            stat(join(path, builds, entry->d_name), &s) != 0 || s.st_mtime + 60 > time(NULL))
            continue;
        const int lock = lock_folder(path);
        if (lock >= 0) {
            remove_all(path);
            close(lock);
        }
    }
    if (list)
        closedir(list);
}

static int open_cache(struct making *m)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool given = cache && cache[0] == '/';
    if (!given && (!home || home[0] != '/'))
        return refuse(m,
                      "nowhere to keep builds: expected XDG_CACHE_HOME or HOME to be a folder");
    snprintf(m->builds, sizeof m->builds, "%.3000s%s/posenc/builds", given ? cache : home,
             given ? "" : "/.cache");
    if (make_folders(m->builds) == 0) {
        sweep(m->builds);
        return EXIT_FINE;
    }
    return cli_refuse(m->cli, "--rev", m->builds, "%s: expected a folder that can be made",
                      strerror(errno));
}

/* ---- What git says ---- */

#define GIT(...) child_says((const char *const[]){ "git", __VA_ARGS__, NULL })

/* Moves a text that may be missing. */
static bool take_text(char *to, size_t size, char *text)
{
    const bool fits = text && (size_t)snprintf(to, size, "%s", text) < size;
    free(text);
    return fits;
}

static int open_repository(struct making *m)
{
    char *version = GIT("--version");
    const bool here = version != NULL;
    free(version);
    m->top = here ? GIT("rev-parse", "--show-toplevel") : NULL;
    if (m->top)
        return EXIT_FINE;
    return refuse(m, here ? "this folder is in no git repository: expected the work tree of one"
                          : "git is not here: expected it to be installed");
}

/* Branches and tags that are nearest, or that the clone does not reach so far. */
static int refuse_revision(struct making *m)
{
    const char *names[MOST_REFS + 1] = { "HEAD" };
    size_t n = 1;
    char *shallow = GIT("rev-parse", "--is-shallow-repository"), *rest = NULL;
    const bool cut = shallow && strcmp(shallow, "true") == 0;
    free(shallow);
    if (cut)
        return refuse(m, "is no commit that this clone has, which is shallow: git fetch "
                         "--unshallow brings the others (actions/checkout: fetch-depth: 0)");
    char *refs = GIT("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate",
                     "--count=30", "refs/heads", "refs/tags", "refs/remotes");
    for (char *name = refs ? strtok_r(refs, "\n", &rest) : NULL; name && n <= MOST_REFS;
         name = strtok_r(NULL, "\n", &rest))
        names[n++] = name;
    cli_refuse_name(m->cli, "--rev", m->revision->name, names, n);
    free(refs);
    return EXIT_USAGE;
}

static int find_commit(struct making *m)
{
    char wanted[sizeof m->revision->name + 16];
    snprintf(wanted, sizeof wanted, "%s^{commit}", m->revision->name);
    const bool option = m->revision->name[0] == '-';
    if (!option && take_text(m->revision->commit, sizeof m->revision->commit,
                             GIT("rev-parse", "--verify", "--quiet", wanted)))
        return EXIT_FINE;
    return refuse_revision(m);
}

static bool copy_file(const char *from, const char *to, mode_t mode)
{
    char buffer[1 << 16];
    size_t n = 0;
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    bool good = out != NULL;
    while (good && (n = fread(buffer, 1, sizeof buffer, in)) > 0)
        good = fwrite(buffer, 1, n, out) == n;
    good = good && !ferror(in);
    if (in)
        fclose(in);
    if (out)
        good = fclose(out) == 0 && good;
    return good && chmod(to, mode) == 0;
}

static void tell_untracked(const struct making *m)
{
    size_t n = 0;
    char *files = GIT("-C", m->top, "ls-files", "--others", "--exclude-standard");
    for (const char *at = files; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        n++;
    free(files);
    if (n > 0)
        text_print(stderr,
                   "posenc %s: the work tree has %zu file%s that git does not track: left out "
                   "(git add takes them in)\n",
                   m->cli->command, n, n == 1 ? "" : "s");
}

/* The work tree as a commit: HEAD, or one of the tracked files as they are, which is the same whenever
 * they are.  It is made with an index of its own. */
static int find_work_tree(struct making *m)
{
    char index[PATH_BYTES], own[PATH_BYTES + 32], git[PATH_BYTES], tree[72], clean[72];
    join(index, m->folder, "index");
    snprintf(own, sizeof own, "GIT_INDEX_FILE=%s", index);
    if (!take_text(m->revision->commit, sizeof m->revision->commit,
                   GIT("-C", m->top, "rev-parse", "--verify", "--quiet", "HEAD")) ||
        !take_text(clean, sizeof clean, GIT("-C", m->top, "rev-parse", "HEAD^{tree}")))
        return refuse(m, "the repository has no commit yet");
    if (!take_text(git, PATH_BYTES - 8, GIT("-C", m->top, "rev-parse", "--absolute-git-dir")) ||
        !copy_file(strcat(git, "/index"), index, 0600))
        return refuse(m, "git's index cannot be read");
    char *added = child_says(
        (const char *const[]){ "env", own, "git", "-C", m->top, "add", "-u", ".", NULL });
    free(added);
    if (!added || !take_text(tree, sizeof tree,
                             child_says((const char *const[]){ "env", own, "git", "-C", m->top,
                                                               "write-tree", NULL })))
        return refuse(m, "git can make no tree of it: expected no conflicts (git status)");
    tell_untracked(m);
    m->revision->dirty = strcmp(tree, clean) != 0;
    if (!m->revision->dirty)
        return EXIT_FINE;
    text_print(stderr, "posenc %s: the work tree is %.10s and changes that are not committed\n",
               m->cli->command, m->revision->commit);
    char *commit = child_says((const char *const[]){
        "env", "GIT_AUTHOR_NAME=posenc", "GIT_AUTHOR_EMAIL=posenc@localhost",
        "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_NAME=posenc",
        "GIT_COMMITTER_EMAIL=posenc@localhost", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
        "git", "-C", m->top, "commit-tree", tree, "-p", m->revision->commit, "-m", work_tree,
        NULL });
    return take_text(m->revision->commit, sizeof m->revision->commit, commit)
               ? EXIT_FINE
               : refuse(m, "git can make no commit of it");
}

/* ---- Building ---- */

/* What a build depends on besides the commit. */
static void name_build(struct making *m)
{
    static const char *const variables[] = { "CC",       "CXX",      "CFLAGS",
                                             "CXXFLAGS", "CPPFLAGS", "LDFLAGS" };
    struct utsname machine = { 0 };
    struct sha256 s;
    char hex[65];
    char *compiler = child_says(
        (const char *const[]){ "sh", "-c", "${CC:-cc} --version | head -n 1", NULL });
    uname(&machine);
    sha256_init(&s);
    const char *const parts[] = { m->how.command, m->how.library, compiler ? compiler : "",
                                  machine.sysname, machine.machine };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sha256_update(&s, parts[i], strlen(parts[i]) + 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        sha256_update(&s, value ? value : "", value ? strlen(value) + 1 : 1);
    }
    sha256_final(&s, hex);
    free(compiler);
    snprintf(m->key, sizeof m->key, "%s-%.12s", m->revision->commit, hex);
}

/* Where the shared object of the build is, or will be. */
static const char *cached(struct making *m, const char *folder)
{
    const char *slash = strrchr(m->how.library, '/');
    char in[PATH_BYTES];
    return join(m->revision->path, join(in, m->builds, folder),
                slash ? slash + 1 : m->how.library);
}

static int refuse_with_log(struct making *m, const char *what)
{
    char log[PATH_BYTES], kept[PATH_BYTES], name[160];
    char *line = NULL, *last[LOG_LINES] = { NULL };
    size_t room = 0, n = 0;
    snprintf(name, sizeof name, "%s.log", m->key);
    if (rename(join(log, m->folder, "build.log"), join(kept, m->builds, name)) != 0)
        snprintf(kept, sizeof kept, "(which cannot be kept: %s)", strerror(errno));
    FILE *file = fopen(kept, "r");
    while (file && getline(&line, &room, file) > 0) {
        free(last[n % LOG_LINES]);
        last[n++ % LOG_LINES] = strdup(line);
    }
    for (size_t i = n > LOG_LINES ? n - LOG_LINES : 0; i < n; i++) {
        const char *text = last[i % LOG_LINES] ? last[i % LOG_LINES] : "";
        text_print(stderr, "| %.*s\n", (int)strcspn(text, "\n"), text);
    }
    if (file)
        fclose(file);
    for (size_t i = 0; i < LOG_LINES; i++)
        free(last[i]);
    free(line);
    return cli_refuse(m->cli, "--rev", m->revision->name, "%s; the log is %s", what, kept);
}

/* Into the cache, whole or not at all.  Who comes second finds it there. */
static int install(struct making *m, const char *tree)
{
    char from[PATH_BYTES], made[PATH_BYTES], log[PATH_BYTES], to[PATH_BYTES],
        target[PATH_BYTES];
    struct stat s;
    if (stat(join(from, tree, m->how.library), &s) != 0 || !S_ISREG(s.st_mode)) {
        char what[PATH_BYTES];
        snprintf(what, sizeof what, "the build makes no file %.3000s", m->how.library);
        return refuse_with_log(m, what);
    }
    const char *slash = strrchr(m->how.library, '/');
    join(made, m->folder, "made");
    join(to, made, slash ? slash + 1 : m->how.library);
    if (mkdir(made, 0777) != 0 || !copy_file(from, to, s.st_mode & 0777) ||
        rename(join(log, m->folder, "build.log"), join(to, made, "build.log")) != 0 ||
        (rename(made, join(target, m->builds, m->key)) != 0 && errno != EEXIST &&
         errno != ENOTEMPTY))
        return cli_refuse(m->cli, "--rev", m->builds, "%s", strerror(errno));
    return EXIT_FINE;
}

/* A command of git's about work trees, one at a time: git reads what another is still writing of its
 * own, and fails. */
static int run_alone(const struct making *m, const char *const *argv, int to)
{
    const int lock = open(m->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR && !child_interrupted()) {
    }
    const int ended_as = child_run(argv, m->top, to);
    if (lock >= 0)
        close(lock);
    return ended_as;
}

static int build(struct making *m)
{
    char tree[PATH_BYTES], log[PATH_BYTES], what[64];
    struct timespec begun, ended;
    join(tree, m->folder, m->key); /* whose name git keeps for it: one of its own */
    const int to =
        open(join(log, m->folder, "build.log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (to < 0)
        return cli_refuse(m->cli, "--rev", log, "%s", strerror(errno));
    text_print(stderr, "posenc %s: %s (%.10s) is being built\n", m->cli->command,
               m->revision->name, m->revision->commit);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    const bool there = run_alone(m,
                                 (const char *const[]){
                                     "git", "-c", "core.hooksPath=/dev/null", "worktree", "add",
                                     "--quiet", "--detach", tree, m->revision->commit, NULL },
                                 to) == 0;
    const int ended_as =
        there && !child_interrupted()
            ? child_run((const char *const[]){ "sh", "-c", m->how.command, NULL }, tree, to)
            : 1;
    close(to);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    snprintf(what, sizeof what, "the build ended with exit code %d", ended_as);
    const int status = child_interrupted() ? EXIT_USAGE
                       : !there            ? refuse_with_log(m, "git cannot check it out")
                       : ended_as != 0     ? refuse_with_log(m, what)
                                           : install(m, tree);
    if (status == EXIT_FINE)
        text_print(stderr, "posenc %s: %s is built, in %.0f s\n", m->cli->command,
                   m->revision->name,
                   (double)(ended.tv_sec - begun.tv_sec) +
                       1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
    run_alone(m, (const char *const[]){ "git", "worktree", "remove", "--force", tree, NULL },
              -1);
    return status;
}

/* ---- A revision ---- */

static int choose_build(struct making *m)
{
    char header[sizeof m->revision->commit + 32];
    if (m->how.command)
        return EXIT_FINE;
    snprintf(header, sizeof header, "%s:impl/include/posenc.h", m->revision->commit);
    char *own = GIT("-C", m->top, "cat-file", "-e", header);
    free(own);
    m->how = own_build;
    return own ? EXIT_FINE
               : cli_refuse(m->cli, "--build", "not given",
                            "%s is not posenc's own: expected a command that builds it, and "
                            "--library PATH for what that makes",
                            m->revision->name);
}

static int find_or_build(struct making *m, bool of_work_tree)
{
    if ((of_work_tree ? find_work_tree(m) : find_commit(m)) != EXIT_FINE ||
        choose_build(m) != EXIT_FINE)
        return EXIT_USAGE;
    name_build(m);
    m->revision->was_there = access(cached(m, m->key), R_OK) == 0;
    return m->revision->was_there ? EXIT_FINE : build(m);
}

int revision_take(const struct cli *cli, const struct revision_build *how, const char *name,
                  struct revision *revision)
{
    struct making m = { .cli = cli, .revision = revision, .how = *how, .lock = -1 };
    int status = EXIT_USAGE;
    *revision = (struct revision){ .dirty = false };
    snprintf(revision->name, sizeof revision->name, "%s", name ? name : work_tree);
    if (name && strlen(name) >= sizeof revision->name)
        return cli_refuse(cli, "--rev", name, "expected a revision of at most %zu characters",
                          sizeof revision->name - 1);
    child_begin();
    if (open_repository(&m) == EXIT_FINE && open_cache(&m) == EXIT_FINE) {
        join(m.folder, m.builds, ".making-XXXXXX");
        if (!mkdtemp(m.folder)) {
            cli_refuse(cli, "--rev", m.folder, "%s", strerror(errno));
        } else {
            m.lock = lock_folder(m.folder);
            status = find_or_build(&m, !name);
            remove_all(m.folder);
            if (m.lock >= 0)
                close(m.lock);
        }
    }
    free(m.top);
    child_end();
    return status;
}
