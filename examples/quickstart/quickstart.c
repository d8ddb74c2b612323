/* The velocity of a helical wake with growing cores at its own nodes. */
#include <math.h>
#include <stdio.h>
#include <wakefmm.h>

enum { N = 20000 };
static double points[N + 1][3], circulation[N], core[N], u[N + 1][3];
static int32_t ends[N][2];

static int failed(wfmm_status status) {
    if (status == WFMM_OK) return 0;
    char message[1024] = "";
    wfmm_last_error(message, sizeof message, NULL);
    fprintf(stderr, "%s: %s\n", wfmm_status_name(status), message);
    return 1;
}

int main(void) {
    const double step = 0.02;
    for (int i = 0; i <= N; ++i) points[i][0] = cos(step * i), points[i][1] = sin(step * i), points[i][2] = 0.001 * i;
    for (int i = 0; i < N; ++i) {
        ends[i][0] = i, ends[i][1] = i + 1; /* numbers of first and last point, counted from 0 */
        circulation[i] = 1, core[i] = 0.02 * sqrt(1 + 0.01 * i);
    }
    wfmm_plan_options options;
    wfmm_plan *plan = NULL;
    double error = 1;
    if (failed(wfmm_plan_options_init(&options, sizeof options))) return 1;
    options.tolerance = 1e-4; /* relative L2 error of u over all targets */
    options.segment_regularization = WFMM_REG_VATISTAS;
    int bad = failed(wfmm_plan_create(NULL, &options, &plan)) ||
              failed(wfmm_plan_set_segments_f64(plan, N + 1, points[0], N, 2, ends[0], circulation, core, WFMM_MEMORY_HOST)) ||
              failed(wfmm_plan_set_targets_f64(plan, N + 1, points[0], WFMM_MEMORY_HOST)) ||
              failed(wfmm_plan_evaluate_f64(plan, u[0], NULL, WFMM_MEMORY_HOST)) || /* u[k] is the velocity at points[k] */
              failed(wfmm_plan_check_f64(plan, 1000, 1, &error)); /* against direct sums at 1000 targets */
    wfmm_plan_destroy(&plan);
    if (!bad) printf("u in the middle: %.4f %.4f %.4f, error %.1e\n", u[N / 2][0], u[N / 2][1], u[N / 2][2], error);
    return bad || error > options.tolerance;
}
