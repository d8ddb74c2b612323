/* The functions of a wfmm_communicator over MPI.
 *
 * Enters: an MPI communicator. Leaves: a distributed session on a duplicate of it. Byte counts have 64 bits: what passes the
 * range of int goes in pieces.
 *
 * Duplicates are few in an MPI (some 65,000), so those of a communicator are kept in a pool, an attribute of it. A session takes one
 * that has no session on any rank; only where there is none another one is made. Sessions end at different times on different ranks,
 * which only marks the duplicate there: communicators are freed in calls that all ranks make together, MPI_Comm_free of the caller's
 * communicator and MPI_Finalize. */
#include "wakefmm_mpi.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of one message, and numbers of one reduction. */
#define PIECE ((int64_t)1 << 28)
#define TAG 1

/* A duplicate: the `user` of the functions of one session at a time. */
struct group {
    MPI_Comm comm;
    int rank, size;
    int taken;  /* by a session of this process */
    int spoilt; /* a function of MPI failed: messages may still be under way, and no other session gets it */
    struct group *next;
};

/* The duplicates of one communicator, in the same order on all its processes. */
struct pool {
    MPI_Comm control; /* for what processes agree on; further duplicates are made of it */
    int rank, size, node_rank;
    int over; /* MPI_Finalize has freed the communicators */
    struct group *groups;
    struct pool *next;
};

/* Guards the lists, the keys and `taken`: sessions may end on any thread. Not held while processes wait for each other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools = NULL;
/* Duplicates of sessions that have outlived their communicator. */
static struct group *orphans = NULL;
/* Of a communicator: its pool. Of MPI_COMM_SELF: MPI_Finalize deletes its attributes first, while MPI still works. */
static int pool_key = MPI_KEYVAL_INVALID, finalize_key = MPI_KEYVAL_INVALID;

static wfmm_status fail(wfmm_status status, const char *text) {
    char message[512];
    int length = snprintf(message, sizeof message, "wfmm_mpi_session_create: %s", text);
    wfmm_last_error_set(message, (size_t)length);
    return status;
}

/* Notes a failure. */
static int32_t passed(struct group *g, int code) {
    if (code != MPI_SUCCESS) g->spoilt = 1;
    return code;
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
        if (code != MPI_SUCCESS) return passed(g, code);
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
        return code != MPI_SUCCESS ? passed(g, code) : -2;
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
    return passed(g, code);
}

static int32_t allgather(void *user, const void *mine, int64_t bytes, void *all) {
    struct group *g = user;
    static char nothing[2];
    if (is_over() || g->comm == MPI_COMM_NULL) return -1;
    /* Arrays without elements may have the same address, which Open MPI refuses. */
    if (bytes == 0) mine = nothing, all = nothing + 1;
    if (bytes <= PIECE)
        return passed(g, MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, g->comm));
    /* Longer shares one rank after the other. */
    memcpy((char *)all + g->rank * bytes, mine, (size_t)bytes);
    for (int from = 0; from < g->size; from++) {
        for (int64_t at = 0; at < bytes; at += PIECE) {
            int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
            int code = MPI_Bcast((char *)all + from * bytes + at, count, MPI_BYTE, from, g->comm);
            if (code != MPI_SUCCESS) return passed(g, code);
        }
    }
    return 0;
}

static int32_t barrier(void *user) {
    struct group *g = user;
    return is_over() || g->comm == MPI_COMM_NULL ? -1 : passed(g, MPI_Barrier(g->comm));
}

/* The session has ended here, maybe long after MPI. */
static void release(void *user) {
    struct group *g = user;
    pthread_mutex_lock(&lock);
    g->taken = 0;
    int gone = g->comm == MPI_COMM_NULL;
    pthread_mutex_unlock(&lock);
    if (gone) free(g);
}

static int is_taken(const struct group *g) {
    pthread_mutex_lock(&lock);
    int taken = g->taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Ends a pool, on all its processes together. Duplicates that a session has on some process stay until MPI_Finalize. */
static void end_pool(struct pool *p) {
    pthread_mutex_lock(&lock);
    for (struct pool **at = &pools; *at; at = &(*at)->next) {
        if (*at != p) continue;
        *at = p->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    for (struct group *g = p->groups, *next; g && !p->over; g = next) {
        int taken = is_taken(g);
        next = g->next;
        if (MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_INT, MPI_MAX, p->control) == MPI_SUCCESS && !taken) {
            MPI_Comm_free(&g->comm);
            free(g);
        } else {
            pthread_mutex_lock(&lock);
            g->next = orphans;
            orphans = g;
            pthread_mutex_unlock(&lock);
        }
    }
    if (!p->over) MPI_Comm_free(&p->control);
    free(p);
}

/* The caller frees its communicator. */
static int at_end(MPI_Comm communicator, int key, void *value, void *extra) {
    (void)communicator, (void)key, (void)extra;
    end_pool(value);
    return MPI_SUCCESS;
}

static void free_all(struct group *first) {
    for (struct group *g = first, *next; g; g = next) {
        next = g->next;
        MPI_Comm_free(&g->comm);
        /* A session may live on: its functions fail from here on. */
        if (!is_taken(g)) free(g);
    }
}

static int at_finalize(MPI_Comm self, int key, void *value, void *extra) {
    (void)self, (void)key, (void)value, (void)extra;
    for (struct pool *p = pools; p; p = p->next) {
        free_all(p->groups);
        MPI_Comm_free(&p->control);
        /* It may still be an attribute of a communicator. */
        p->groups = NULL;
        p->over = 1;
    }
    free_all(orphans);
    orphans = NULL;
    return MPI_SUCCESS;
}

static int make_keys(void) {
    int code = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    if (pool_key == MPI_KEYVAL_INVALID) code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &pool_key, NULL);
    if (code == MPI_SUCCESS && finalize_key == MPI_KEYVAL_INVALID) {
        code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &finalize_key, NULL);
        if (code == MPI_SUCCESS) code = MPI_Comm_set_attr(MPI_COMM_SELF, finalize_key, NULL);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* The largest status of all processes. */
static wfmm_status agreed(MPI_Comm communicator, int rank, wfmm_status status) {
    struct {
        int status, rank;
    } worst = {status, rank};
    if (MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_2INT, MPI_MAXLOC, communicator) != MPI_SUCCESS)
        return fail(WFMM_ERR_COMMUNICATION, "MPI_Allreduce failed");
    if (worst.status != status) {
        char text[128];
        snprintf(text, sizeof text, "rank %d: %s; wfmm_last_error there says more", worst.rank, wfmm_status_name(worst.status));
        return fail(worst.status, text);
    }
    return worst.status;
}

/* A duplicate that returns errors, on all processes or on none. Where it was made on some only they keep it until MPI_Finalize,
   since all would have to free it together. */
static wfmm_status duplicate(MPI_Comm communicator, int rank, MPI_Comm *out) {
    wfmm_status status = WFMM_OK;
    if (MPI_Comm_dup(communicator, out) != MPI_SUCCESS)
        status = fail(WFMM_ERR_COMMUNICATION, "MPI_Comm_dup could not duplicate the communicator");
    else
        MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
    return agreed(communicator, rank, status);
}

/* The pool of a communicator that has none yet, on all processes or on none. `status`: what is wrong on this process so far. */
static wfmm_status make_pool(MPI_Comm communicator, wfmm_status status, struct pool **out) {
    struct pool *p = calloc(1, sizeof *p);
    MPI_Errhandler before;
    MPI_Comm node;
    int rank = 0, attached = 0;
    MPI_Comm_rank(communicator, &rank);
    if (!p && !status) status = fail(WFMM_ERR_HOST_MEMORY, "no memory for a duplicate of the communicator");
    /* What fails here is a status, also where the caller's errors are fatal. */
    MPI_Comm_get_errhandler(communicator, &before);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    status = agreed(communicator, rank, status);
    if (!status) status = duplicate(communicator, rank, &p->control);
    MPI_Comm_set_errhandler(communicator, before);
    MPI_Errhandler_free(&before);
    if (status) {
        free(p);
        return status;
    }
    p->rank = rank;
    MPI_Comm_size(p->control, &p->size);
    if (MPI_Comm_split_type(p->control, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_rank(node, &p->node_rank);
        MPI_Comm_free(&node);
    }
    pthread_mutex_lock(&lock);
    p->next = pools;
    pools = p;
    pthread_mutex_unlock(&lock);
    attached = make_keys() == MPI_SUCCESS && MPI_Comm_set_attr(communicator, pool_key, p) == MPI_SUCCESS;
    status = attached ? WFMM_OK : fail(WFMM_ERR_COMMUNICATION, "MPI_Comm_set_attr could not attach the duplicates");
    status = agreed(p->control, rank, status);
    if (status && attached)
        MPI_Comm_delete_attr(communicator, pool_key);
    else if (status)
        end_pool(p);
    else
        *out = p;
    return status;
}

/* A duplicate that no session has on any process, an old or a new one. */
static wfmm_status take(struct pool *p, struct group **out) {
    enum { AT_ONCE = 64 };
    struct group **at = &p->groups, *g;
    wfmm_status status;
    while (*at) {
        int busy[AT_ONCE], n = 0, k = 0;
        for (g = *at; g && n < AT_ONCE; g = g->next) busy[n++] = is_taken(g) || g->spoilt;
        if (MPI_Allreduce(MPI_IN_PLACE, busy, n, MPI_INT, MPI_MAX, p->control) != MPI_SUCCESS)
            return fail(WFMM_ERR_COMMUNICATION, "MPI_Allreduce failed");
        for (; k < n && busy[k]; k++) at = &(*at)->next;
        if (k < n) {
            (*at)->taken = 1;
            *out = *at;
            return WFMM_OK;
        }
    }
    g = calloc(1, sizeof *g);
    status = g ? WFMM_OK : fail(WFMM_ERR_HOST_MEMORY, "no memory for a duplicate of the communicator");
    status = agreed(p->control, p->rank, status);
    if (!status) status = duplicate(p->control, p->rank, &g->comm);
    if (status) {
        free(g);
        return status;
    }
    g->rank = p->rank;
    g->size = p->size;
    g->taken = 1;
    *out = *at = g;
    return WFMM_OK;
}

/* 0 where this thread may call MPI. */
static wfmm_status mpi_is_ready(void) {
    int yes = 0, level = MPI_THREAD_SINGLE, is_main = 0;
    if (MPI_Initialized(&yes) != MPI_SUCCESS || !yes) return fail(WFMM_ERR_STATE, "MPI is not initialized: call MPI_Init_thread first");
    if (is_over()) return fail(WFMM_ERR_STATE, "MPI was finalized before");
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    if (level <= MPI_THREAD_FUNNELED && !is_main)
        return fail(WFMM_ERR_STATE, "with MPI_THREAD_FUNNELED the call must come from the thread that initialized MPI");
    return WFMM_OK;
}

/* What may be wrong on one process alone; the level needed is FUNNELED, because the library has threads. */
static wfmm_status checked(const wfmm_communicator *out) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED)
        return fail(WFMM_ERR_STATE,
                    "the thread level is MPI_THREAD_SINGLE, and the library has threads: call MPI_Init_thread with "
                    "MPI_THREAD_FUNNELED or more in place of MPI_Init");
    return out ? WFMM_OK : fail(WFMM_ERR_NULL, "out is NULL");
}

wfmm_status wfmm_mpi_communicator(MPI_Comm communicator, wfmm_communicator *out) {
    int inter = 0, found = 0;
    struct pool *pool = NULL;
    struct group *g = NULL;
    wfmm_status status = mpi_is_ready();
    if (status) return status;
    if (communicator == MPI_COMM_NULL) return fail(WFMM_ERR_NULL, "the communicator is MPI_COMM_NULL");
    MPI_Comm_test_inter(communicator, &inter);
    if (inter) return fail(WFMM_ERR_VALUE, "an intercommunicator; a communicator of one group is needed");
    /* From here on all processes are together. */
    status = checked(out);
    pthread_mutex_lock(&lock);
    if (pool_key != MPI_KEYVAL_INVALID) MPI_Comm_get_attr(communicator, pool_key, &pool, &found);
    pthread_mutex_unlock(&lock);
    status = found ? agreed(pool->control, pool->rank, status) : make_pool(communicator, status, &pool);
    if (!status) status = take(pool, &g);
    if (status) return status;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->rank = g->rank;
    out->size = g->size;
    out->node_rank = pool->node_rank;
    out->user = g;
    out->allreduce = allreduce;
    out->allgather = allgather;
    out->alltoallv = alltoallv;
    out->barrier = barrier;
    out->release = release;
    return WFMM_OK;
}

wfmm_status wfmm_mpi_communicator_f(MPI_Fint communicator, wfmm_communicator *out) {
    /* Before MPI_Init and after MPI_Finalize the conversion itself would end the process. */
    const wfmm_status status = mpi_is_ready();
    return status ? status : wfmm_mpi_communicator(MPI_Comm_f2c(communicator), out);
}

wfmm_status wfmm_mpi_session_create(MPI_Comm communicator, const wfmm_session_options *options, wfmm_session **out) {
    wfmm_communicator table;
    wfmm_status status = wfmm_mpi_communicator(communicator, &table);
    return status ? status : wfmm_session_create_distributed(options, &table, out);
}
