/* Tests records.h: records are written unchanged, except that control characters are escaped; numbers and paths. */
#define _POSIX_C_SOURCE 200809L
#include "base/records.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_writing(void)
{
    static const char text[] =
        "{\"t\":\"header\",\"schema\":\"posenc.results/2\",\"seed\":\"0x0\"}\n";
    char *written = NULL;
    size_t size = 0;
    struct records records = { .list = json_array(),
                               .stream = open_memstream(&written, &size) };
    records_append(&records, json_loads(text, 0, NULL));
    require(strcmp(written, text) == 0, "a record is one line, which is written at once");
    records_append(&records, json_pack("{s:[s]}", "t", "\x1b[31m"));
    require(strstr(written, "[\"\\\\x1b[31m\"]") && !records.failed,
            "control characters are escaped in a record");
    records_append(&records, NULL);
    require(records.failed, "a record that could not be made is an error");
    json_decref(records.list);
    fclose(records.stream);
    free(written);
}

static void test_numbers(void)
{
    json_t *inf = record_number(HUGE_VAL), *not_a_number = record_number(nan("")),
           *hex = record_hex(0.1);
    require(json_is_string(inf) && isinf(record_double(inf, 0.0)),
            "infinity is a string, and is read as infinity");
    require(json_is_string(not_a_number) && isnan(record_double(not_a_number, 0.0)),
            "NaN is a string, and is read as NaN");
    require(record_double(hex, 0.0) == 0.1, "hexadecimal keeps every bit of 0.1");
    json_decref(inf);
    json_decref(not_a_number);
    json_decref(hex);
}

static void test_reading(void)
{
    json_t *record =
        json_pack("{s:{s:s},s:o}", "a", "b", "c", "words", record_words(" x  yz "));
    const json_t *words = json_object_get(record, "words");
    require(record_is(record, "a.b", "c") && !record_is(record, "a.x", "c"),
            "a member is compared by its path");
    require(json_array_size(words) == 2 &&
                strcmp(json_string_value(json_array_get(words, 1)), "yz") == 0,
            "words are separated by spaces");
    json_decref(record);
}

int main(void)
{
    test_reading();
    test_writing();
    test_numbers();
    return tap_end();
}
