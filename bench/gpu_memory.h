/* Device memory for benches that hand over device arrays; a call that fails ends the program. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include "../tests/gpu/driver.h"

/* The first device's primary context. */
static inline void open_device(void) {
    handle_t context;
    if (!open_driver() || cu_retain(&context, 0) || cu_set(context)) { printf("no GPU\n"); exit(1); }
}
static inline void renew(void *array, const void *from, size_t bytes) {
    if (bytes && cu_in((uint64_t)(uintptr_t)array, from, bytes)) { printf("a copy failed\n"); exit(1); }
}
/* A new device array with these bytes, or with anything where there are none. */
static inline void *there(const void *from, size_t bytes) {
    uint64_t to = 0;
    if (cu_alloc(&to, bytes ? bytes : 8)) { printf("no device memory\n"); exit(1); }
    void *array = (void *)(uintptr_t)to;
    if (from) renew(array, from, bytes);
    return array;
}
static inline void back(void *to, const void *array, size_t bytes) {
    if (cu_out(to, (uint64_t)(uintptr_t)array, bytes)) { printf("a copy failed\n"); exit(1); }
}
static inline void let_go(void *array) { cu_free((uint64_t)(uintptr_t)array); }
