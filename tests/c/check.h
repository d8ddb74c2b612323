/* What the C tests share: checks that count, and go on after a failure. The Fortran twins are in tests/fortran. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wakefmm.h"

static int checks_done = 0, checks_failed = 0;

#define CHECK(condition) \
    do { \
        checks_done++; \
        if (!(condition)) { \
            checks_failed++; \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
        } \
    } while (0)

static inline const char *last_error(void) {
    static _Thread_local char message[1024];
    wfmm_last_error(message, sizeof message, NULL);
    return message;
}

/* The call returns this status; where it is an error, the message holds `word`. */
#define EXPECT(call, wanted, word) \
    do { \
        wfmm_status got_ = (call); \
        checks_done++; \
        if (got_ != (wanted) || ((wanted) != WFMM_OK && !strstr(last_error(), word))) { \
            checks_failed++; \
            printf("%s:%d: %s returned %s, wanted %s with '%s'; message: %s\n", __FILE__, __LINE__, #call, \
                   wfmm_status_name(got_), wfmm_status_name(wanted), word, last_error()); \
        } \
    } while (0)

#define OK(call) EXPECT(call, WFMM_OK, "")

static inline int close_to(double got, double want, double relative) {
    if (fabs(got - want) <= relative * fabs(want)) return 1;
    printf("  got %.17g, wanted %.17g\n", got, want);
    return 0;
}

static inline int finish(const char *name) {
    printf("%s: %d checks, %d failed\n", name, checks_done, checks_failed);
    return checks_failed != 0;
}

#endif
