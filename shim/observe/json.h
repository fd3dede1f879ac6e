/* shim/observe/json.h - writes one JSON document, piece by piece.
 * Called by  shim/observe/{stats,dump}.c      Calls  shim/observe/sink.h
 * Threads    one per writer
 * Promise    whatever bytes a string holds, the document is valid JSON in UTF-8: what is not UTF-8
 *            becomes U+FFFD. Numbers look the same in every locale. The first failure sticks and is
 *            returned by ag_json_close(). No allocation.
 * Start at   ag_json_open() */
#ifndef AG_SHIM_OBSERVE_JSON_H
#define AG_SHIM_OBSERVE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/observe/sink.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_JSON_DEPTH = 32 };

struct ag_json {
    struct ag_sink *sink;
    unsigned depth;   /* objects and arrays open */
    uint32_t arrays;  /* bit d: what is open at depth d is an array */
    uint32_t started; /* bit d: it has a member already */
};

void ag_json_open(struct ag_json *j, struct ag_sink *sink);

/* `key` names the member of an object and is NULL in an array and at the root. A call that does not
 * fit where the writer stands is a failure (EINVAL), so is a depth over AG_JSON_DEPTH - 1. */
void ag_json_object(struct ag_json *j, const char *key);
void ag_json_array(struct ag_json *j, const char *key);
/* Ends the innermost object or array. */
void ag_json_end(struct ag_json *j);
/* NULL is written as null. */
void ag_json_text(struct ag_json *j, const char *key, const char *value);
void ag_json_u64(struct ag_json *j, const char *key, uint64_t value);
/* At least 12 digits are right; what is no number is written as null. */
void ag_json_double(struct ag_json *j, const char *key, double value);
void ag_json_bool(struct ag_json *j, const char *key, bool value);
void ag_json_null(struct ag_json *j, const char *key);

/* 0 if the document is complete and every byte was taken, else an errno value. */
int ag_json_close(struct ag_json *j);

#ifdef __cplusplus
}
#endif
#endif
