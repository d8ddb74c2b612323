/* Memory that runs out on one process: the n-th allocation of the library there fails, once or from then on, in a plan by the FMM,
   one by the direct sum and a flow. Every call has the same status on all processes, and nobody waits for ever (a time limit is
   the caller's). Enters: optionally how many steps double n. Leaves: 0, or 1 and a line that says where statuses differ. */
#include "../faults/failing_allocator.h"
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "wakefmm_mpi.h"

enum { N = 600, CALLS = 8 };
enum { FMM, DIRECT, FLOW, CASES };
static const char *const names[CASES] = {"FMM", "direct sum", "flow"};
static double position[3 * N], strength[3 * N], velocity[3 * N];
static int rank, size;

/* Statuses of the calls of one case; the allocation n of process `victim` fails. */
static void run(wfmm_session *session, int which, int victim, long n, int forever, wfmm_status *status) {
    wfmm_plan_options o;
    wfmm_flow_options f;
    wfmm_plan *plan = NULL;
    wfmm_flow *flow = NULL;
    int k = 0;
    wfmm_plan_options_init(&o, sizeof o);
    wfmm_flow_options_init(&f, sizeof f);
    o.method = which == DIRECT ? WFMM_METHOD_DIRECT : WFMM_METHOD_FMM, o.tolerance = 1e-3;
    f.integrator = WFMM_INTEGRATOR_AB2;
    memset(status, 0, CALLS * sizeof *status);
    atomic_store(&seen, 0), atomic_store(&for_ever, forever), atomic_store(&fail_at, rank == victim ? n : 0);
    if (which == FLOW) {
        status[k++] = wfmm_flow_create(session, &o, &f, &flow);
        if (!flow) goto end;
        status[k++] = wfmm_flow_set_particles_f64(flow, N, position, strength, NULL, 0);
        status[k++] = wfmm_flow_add_tracers_f64(flow, N / 2, strength, 0);
        status[k++] = wfmm_flow_advance(flow, 1e-6, 2);
        /* The step that failed is not done; what was there still is. */
        atomic_store(&fail_at, 0);
        status[k++] = wfmm_flow_advance(flow, 1e-6, 1);
        status[k++] = wfmm_flow_destroy(&flow);
    } else {
        status[k++] = wfmm_plan_create(session, &o, &plan);
        if (!plan) goto end;
        status[k++] = wfmm_plan_set_particles_f64(plan, N, position, strength, NULL, 0);
        status[k++] = wfmm_plan_set_targets_f64(plan, N, position, 0);
        status[k++] = wfmm_plan_evaluate_f64(plan, velocity, NULL, 0);
        atomic_store(&fail_at, 0);
        status[k++] = wfmm_plan_set_targets_f64(plan, N / 2, position, 0);
        status[k++] = wfmm_plan_evaluate_f64(plan, velocity, NULL, 0);
        status[k++] = wfmm_plan_destroy(&plan);
    }
end:
    atomic_store(&fail_at, 0);
}

int main(int argc, char **argv) {
    int level, failed = 0, met = 0, runs = 0;
    const int steps = argc > 1 ? atoi(argv[1]) : 2;
    wfmm_session *session = NULL;
    wfmm_session_options so;
    dl_iterate_phdr(find_library, NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    srand(7u + (unsigned)rank);
    for (int i = 0; i < 3 * N; ++i) position[i] = rand() / (double)RAND_MAX, strength[i] = rand() / (double)RAND_MAX;
    wfmm_session_options_init(&so, sizeof so);
    so.threads = 1;
    if (!library_begin || wfmm_mpi_session_create(MPI_COMM_WORLD, &so, &session)) {
        printf("rank %d: no library or no session\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int which = 0; which < CASES; ++which) {
        wfmm_status mine[CALLS], *all = malloc((size_t)size * sizeof mine);
        long last = 1;
        for (double n = 0; n <= (double)last && !failed; n = n < 8 ? n + 1 : n * pow(2, 1.0 / steps)) {
            /* n = 0: nothing fails, and the allocations are counted. */
            for (int forever = 0; forever < 2 && !failed; ++forever) {
                long count;
                run(session, which, runs++ % size, (long)n, forever, mine);
                count = atomic_load(&seen);
                if (n < 1) MPI_Allreduce(&count, &last, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
                MPI_Allgather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
                for (int r = 0; r < size && !failed; ++r)
                    for (int k = 0; k < CALLS && !failed; ++k) {
                        met += r == 0 && all[k] != 0;
                        if (all[r * CALLS + k] == all[k] && (n >= 1 || all[k] == 0)) continue;
                        failed = 1;
                        if (rank == 0)
                            printf("%s, allocation %ld%s of rank %d: call %d has status %d on rank %d and %d on rank 0\n", names[which],
                                (long)n, forever ? " and all after it" : "", (runs - 1) % size, k, all[r * CALLS + k], r, all[k]);
                    }
            }
        }
        free(all);
    }
    if (rank == 0) printf("memory of one rank: %d runs, %d calls failed alike on all ranks\n", runs, met);
    if (met < 20) failed = 1;
    wfmm_session_destroy(&session);
    MPI_Finalize();
    return failed;
}
