/* An allocator under the library that fails on demand: the allocation number `fail_at` of libwakefmm, or all from it on (`for_ever`).
   Allocations of other code are served. To be included once, before any other header, by a program with find_library called first. */
#ifndef FAILING_ALLOCATOR_H
#define FAILING_ALLOCATOR_H
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static uintptr_t library_begin, library_end;
static atomic_long seen, fail_at; /* 0: never */
static atomic_int for_ever;

static int find_library(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (!strstr(info->dlpi_name, "libwakefmm.so")) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD) continue;
        const uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_memsz;
        if (!library_begin || begin < library_begin) library_begin = begin;
        if (end > library_end) library_end = end;
    }
    return 1;
}
static int fails(void *caller) {
    if ((uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end) return 0;
    const long n = atomic_fetch_add(&seen, 1) + 1, at = atomic_load(&fail_at);
    return at && (for_ever ? n >= at : n == at);
}
#define CALLER __builtin_return_address(0)
void *malloc(size_t n) { return fails(CALLER) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails(CALLER) ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails(CALLER) ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return fails(CALLER) ? NULL : __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
    if (fails(CALLER)) return ENOMEM;
    return (*p = __libc_memalign(a, n)) ? 0 : ENOMEM;
}
#endif
