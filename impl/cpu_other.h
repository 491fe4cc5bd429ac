/* Features and key of an architecture without backends of its own, for cpu.c: there are
 * none. */
struct place {
    int none;
};

#define CPU_FEATURES

static void read_cpu(void) {}

static bool has_feature(const struct place *at)
{
    (void)at;
    return false;
}

static void read_key(char *key, size_t size) { snprintf(key, size, "unknown"); }
