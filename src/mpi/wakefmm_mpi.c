/* The functions of a wfmm_communicator over MPI.
 *
 * Enters: an MPI communicator. Leaves: a distributed session on a duplicate of it. Byte counts have 64 bits: what passes the
 * range of int goes in pieces. */
#include "wakefmm_mpi.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of one message, and numbers of one reduction. */
#define PIECE ((int64_t)1 << 28)
#define TAG 1

struct group {
    MPI_Comm comm;
    int rank, size;
    struct group *next;
};

/* Duplicates that live until MPI_Finalize, which calls the delete function of an attribute of MPI_COMM_SELF first. */
static struct group *groups = NULL;
static int keyval = MPI_KEYVAL_INVALID;

static wfmm_status fail(wfmm_status status, const char *text) {
    char message[512];
    int length = snprintf(message, sizeof message, "wfmm_mpi_session_create: %s", text);
    wfmm_last_error_set(message, (size_t)length);
    return status;
}

static int is_over(void) {
    int over = 0;
    return MPI_Finalized(&over) != MPI_SUCCESS || over;
}

static int32_t allreduce(void *user, void *values, int64_t n, int32_t type, int32_t operation) {
    struct group *g = user;
    static const int sizes[2] = {sizeof(double), sizeof(int64_t)};
    if (is_over() || g->comm == MPI_COMM_NULL || type < 0 || type > 1 || operation < 0 || operation > 2) return -1;
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT64_T};
    MPI_Op operations[3] = {MPI_SUM, MPI_MIN, MPI_MAX};
    for (int64_t at = 0; at < n; at += PIECE) {
        int count = (int)(n - at < PIECE ? n - at : PIECE);
        int code = MPI_Allreduce(MPI_IN_PLACE, (char *)values + at * sizes[type], count, types[type], operations[operation],
                                 g->comm);
        if (code != MPI_SUCCESS) return code;
    }
    return 0;
}

static int32_t alltoallv(void *user, const void *send, const int64_t *send_bytes, const int64_t *send_offsets, void *receive,
                         const int64_t *receive_bytes, const int64_t *receive_offsets, int32_t memory) {
    struct group *g = user;
    int64_t messages = 0, at;
    int code = MPI_SUCCESS, n = 0, i;
    if (is_over() || g->comm == MPI_COMM_NULL || memory != WFMM_MEMORY_HOST) return -1;
    for (i = 0; i < g->size; i++)
        messages += (send_bytes[i] + PIECE - 1) / PIECE + (receive_bytes[i] + PIECE - 1) / PIECE;
    MPI_Request *requests = malloc((size_t)(messages + 1) * sizeof *requests);
    /* A rank without memory must not leave the others waiting. */
    int short_of_memory = requests == NULL;
    code = MPI_Allreduce(MPI_IN_PLACE, &short_of_memory, 1, MPI_INT, MPI_MAX, g->comm);
    if (code != MPI_SUCCESS || short_of_memory) {
        free(requests);
        return code != MPI_SUCCESS ? code : -2;
    }
    /* Neighbours only: nothing is sent where there is nothing to send. Each begins with the rank after its own. */
    for (i = 0; i < g->size; i++) {
        int from = (g->rank + g->size - i) % g->size;
        for (at = 0; at < receive_bytes[from] && code == MPI_SUCCESS; at += PIECE) {
            int64_t left = receive_bytes[from] - at;
            code = MPI_Irecv((char *)receive + receive_offsets[from] + at, (int)(left < PIECE ? left : PIECE), MPI_BYTE, from,
                             TAG, g->comm, &requests[n]);
            n += code == MPI_SUCCESS;
        }
    }
    for (i = 0; i < g->size; i++) {
        int to = (g->rank + i) % g->size;
        for (at = 0; at < send_bytes[to] && code == MPI_SUCCESS; at += PIECE) {
            int64_t left = send_bytes[to] - at;
            code = MPI_Isend((const char *)send + send_offsets[to] + at, (int)(left < PIECE ? left : PIECE), MPI_BYTE, to, TAG,
                             g->comm, &requests[n]);
            n += code == MPI_SUCCESS;
        }
    }
    if (code == MPI_SUCCESS) code = MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return code;
}

static int32_t allgather(void *user, const void *mine, int64_t bytes, void *all) {
    struct group *g = user;
    if (is_over() || g->comm == MPI_COMM_NULL) return -1;
    if (bytes <= PIECE) return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, g->comm);
    /* Longer shares one rank after the other. */
    memcpy((char *)all + g->rank * bytes, mine, (size_t)bytes);
    for (int from = 0; from < g->size; from++) {
        for (int64_t at = 0; at < bytes; at += PIECE) {
            int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
            int code = MPI_Bcast((char *)all + from * bytes + at, count, MPI_BYTE, from, g->comm);
            if (code != MPI_SUCCESS) return code;
        }
    }
    return 0;
}

static int32_t barrier(void *user) {
    struct group *g = user;
    return is_over() || g->comm == MPI_COMM_NULL ? -1 : MPI_Barrier(g->comm);
}

static int at_finalize(MPI_Comm self, int key, void *value, void *extra) {
    (void)self, (void)key, (void)value, (void)extra;
    for (struct group *g = groups; g; g = g->next) {
        /* Sessions may live on: their functions fail from here on. */
        if (g->comm != MPI_COMM_NULL) MPI_Comm_free(&g->comm);
    }
    return MPI_SUCCESS;
}

/* 0 where MPI may be called; the level needed is FUNNELED, because the library has threads. */
static wfmm_status mpi_is_ready(void) {
    int yes = 0, level = MPI_THREAD_SINGLE, is_main = 0;
    if (MPI_Initialized(&yes) != MPI_SUCCESS || !yes) return fail(WFMM_ERR_STATE, "MPI is not initialized: call MPI_Init_thread first");
    if (is_over()) return fail(WFMM_ERR_STATE, "MPI was finalized before");
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED)
        return fail(WFMM_ERR_STATE,
                    "the thread level is MPI_THREAD_SINGLE, and the library has threads: call MPI_Init_thread with "
                    "MPI_THREAD_FUNNELED or more in place of MPI_Init");
    MPI_Is_thread_main(&is_main);
    if (level == MPI_THREAD_FUNNELED && !is_main)
        return fail(WFMM_ERR_STATE, "with MPI_THREAD_FUNNELED the call must come from the thread that initialized MPI");
    return WFMM_OK;
}

static struct group *duplicate(MPI_Comm communicator, int *node_rank) {
    struct group *g = calloc(1, sizeof *g);
    int short_of_memory = g == NULL;
    MPI_Comm node;
    if (MPI_Allreduce(MPI_IN_PLACE, &short_of_memory, 1, MPI_INT, MPI_MAX, communicator) != MPI_SUCCESS || short_of_memory) {
        free(g);
        return NULL;
    }
    if (MPI_Comm_dup(communicator, &g->comm) != MPI_SUCCESS) {
        free(g);
        return NULL;
    }
    MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(g->comm, &g->rank);
    MPI_Comm_size(g->comm, &g->size);
    if (MPI_Comm_split_type(g->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_rank(node, node_rank);
        MPI_Comm_free(&node);
    }
    if (keyval == MPI_KEYVAL_INVALID) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    }
    g->next = groups;
    groups = g;
    return g;
}

wfmm_status wfmm_mpi_communicator(MPI_Comm communicator, wfmm_communicator *out) {
    int node_rank = 0, inter = 0;
    wfmm_status status = mpi_is_ready();
    if (status) return status;
    if (communicator == MPI_COMM_NULL) return fail(WFMM_ERR_NULL, "the communicator is MPI_COMM_NULL");
    MPI_Comm_test_inter(communicator, &inter);
    if (inter) return fail(WFMM_ERR_VALUE, "an intercommunicator; a communicator of one group is needed");
    struct group *g = duplicate(communicator, &node_rank);
    if (!g) return fail(WFMM_ERR_COMMUNICATION, "the communicator could not be duplicated on all processes");
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->rank = g->rank;
    out->size = g->size;
    out->node_rank = node_rank;
    out->user = g;
    out->allreduce = allreduce;
    out->allgather = allgather;
    out->alltoallv = alltoallv;
    out->barrier = barrier;
    return WFMM_OK;
}

wfmm_status wfmm_mpi_communicator_f(MPI_Fint communicator, wfmm_communicator *out) {
    return wfmm_mpi_communicator(MPI_Comm_f2c(communicator), out);
}

wfmm_status wfmm_mpi_session_create(MPI_Comm communicator, const wfmm_session_options *options, wfmm_session **out) {
    wfmm_communicator table;
    wfmm_status status = wfmm_mpi_communicator(communicator, &table);
    return status ? status : wfmm_session_create_distributed(options, &table, out);
}
