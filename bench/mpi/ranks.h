/* What the benchmarks over MPI share: this rank and all of them, numbers of chance, calls that must succeed, the time of the slowest rank. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wakefmm_mpi.h"

static int rank, size;
static uint64_t state = 1;

/* 64 bits of chance. */
static uint64_t bits(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
static void must(wfmm_status status) {
    char message[600] = "";
    if (!status) return;
    wfmm_last_error(message, sizeof message, NULL);
    fprintf(stderr, "rank %d: %s\n", rank, message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
/* Room for n numbers of so many bytes. */
static void *room(int64_t n, size_t each) {
    void *x = malloc((size_t)(n > 0 ? n : 1) * each);
    if (!x) MPI_Abort(MPI_COMM_WORLD, 1);
    return x;
}
static int rising(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }
/* Seconds since `start` on the rank where they are most. */
static double slowest(double start) {
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}
