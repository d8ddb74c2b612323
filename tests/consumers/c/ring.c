/* A stranger's C program: built by pkg-config, shared or static. Create, evaluate at several sets of points, destroy. */
#include <math.h>
#include <stdio.h>
#include <wakefmm.h>

enum { N = 128, M = 9 };

static int fail(const char *what) {
    char message[512] = "";
    wfmm_last_error(message, sizeof message, NULL);
    fprintf(stderr, "%s: %s\n", what, message);
    return 1;
}

int main(void) {
    static float x[N][3], gamma[N], y[M][3], u[M][3];
    static int32_t ends[N][4];
    const double turn = 2 * acos(-1) / N;
    wfmm_plan_options options;
    wfmm_plan *plan = NULL;
    if (wfmm_abi_version() != WFMM_ABI_VERSION) return fail("header and library differ");
    for (int i = 0; i < N; ++i) {
        x[i][0] = (float)cos(turn * i), x[i][1] = (float)sin(turn * i), x[i][2] = 0, gamma[i] = 1;
        ends[i][0] = i + 1, ends[i][1] = (i + 1) % N + 1, ends[i][2] = -7, ends[i][3] = 1 << 30;
    }
    if (wfmm_plan_options_init(&options, sizeof options)) return fail("options");
    options.index_base = 1;
    if (wfmm_plan_create(NULL, &options, &plan)) return fail("create");
    if (wfmm_plan_set_segments_f32(plan, N, x[0], N, 4, ends[0], gamma, NULL, WFMM_MEMORY_HOST)) return fail("segments");
    for (int set = 0; set < 3; ++set) {
        for (int k = 0; k < M; ++k) y[k][0] = y[k][1] = 0, y[k][2] = (float)(0.25 * (k + set));
        if (wfmm_plan_set_targets_f32(plan, M, y[0], WFMM_MEMORY_HOST)) return fail("targets");
        if (wfmm_plan_evaluate_f32(plan, u[0], NULL, WFMM_MEMORY_HOST)) return fail("evaluate");
        for (int k = 0; k < M; ++k) {
            /* Axis of a polygon of N sides: the ring's formula to (turn^2)/6. */
            const double z = y[k][2], theory = 0.5 / pow(1 + z * z, 1.5);
            if (fabs(u[k][2] - theory) > 1e-3 * theory) return printf("z = %g: %g, theory %g\n", z, u[k][2], theory), 1;
        }
    }
    if (wfmm_plan_destroy(&plan) || plan) return fail("destroy");
    puts("C consumer: axis of a vortex ring, three sets of points: right");
    return 0;
}
