/*
 * Records keep what they were given, and files that hold none are rejected.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/records.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *reread(const char *text, char error[RECORDS_ERROR])
{
    json_t *list = json_array();
    FILE *in = tmpfile();
    const bool good = in && fputs(text, in) >= 0 && fseek(in, 0, SEEK_SET) == 0 &&
                      records_read(in, "text", list, NULL, error) == 0;
    if (in)
        fclose(in);
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

static void test_writing(void)
{
    static const char text[] =
        "{\"t\":\"header\",\"schema\":\"posenc.results/1\",\"seed\":\"0x0\"}\n";
    char error[RECORDS_ERROR] = "";
    json_t *list = reread(text, error);
    struct records records;
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);
    require(list && out && records_open(&records, NULL, error) == 0, "records are read");
    records.stream = out;
    require(records_append(&records, json_incref(json_array_get(list, 0))) == 0 &&
                fflush(out) == 0 && strcmp(written, text) == 0,
            "records that are read and written again are the same");
    require(records_append(&records, NULL) != 0 && records_close(&records, error) != 0,
            "a record that could not be made is an error");
    fclose(out);
    free(written);
    json_decref(list);
    require(records_open(&records, "/nowhere/at/all.jsonl", error) != 0 &&
                strstr(error, "/nowhere/at/all.jsonl"),
            "a path that cannot be written is named");
}

static void test_numbers(void)
{
    json_t *inf = record_number(HUGE_VAL), *none = record_number(nan("")),
           *hex = record_hex(0.1);
    require(json_is_string(inf) && isinf(record_double(inf, 0.0)),
            "infinity is the string inf, and comes back");
    require(json_is_string(none) && isnan(record_double(none, 0.0)),
            "NaN is the string nan, and comes back");
    require(record_double(hex, 0.0) == 0.1, "hexadecimal keeps every bit of 0.1");
    json_decref(inf);
    json_decref(none);
    json_decref(hex);
}

static void test_rejections(void)
{
    static const struct {
        const char *text, *named;
    } bad[] = {
        { "{\"t\":\"header\",\"schema\":\"posenc.results/1\"}\n{\"t\":\n", "line 2" },
        { "{\"t\":\"header\",\"schema\":\"posenc.results/9\"}\n", "posenc.results/9" },
        { "{\"kernel\":\"alibi\"}\n", "line 1" },
        { "[1, 2]\n", "line 1" },
        { "\n\n", "no record" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[RECORDS_ERROR] = "", sentence[96];
        json_t *list = reread(bad[i].text, error);
        snprintf(sentence, sizeof sentence, "a file that holds none is rejected, naming: %s",
                 bad[i].named);
        require(!list && strstr(error, bad[i].named) && strstr(error, "posenc.results/1"),
                sentence);
        json_decref(list);
    }
}

int main(void)
{
    test_writing();
    test_numbers();
    test_rejections();
    return tap_end();
}
