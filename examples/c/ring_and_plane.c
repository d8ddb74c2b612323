/* A vortex ring that sinks on a plane and spreads along it, beside the head-on collision with its mirror image, which is the same
   flow. Prints height and radius of both rings, leaves 1 where they differ by more than 1e-9 (direct sums).
   cc ring_and_plane.c $(pkg-config --cflags --libs wakefmm) -lm && ./a.out [steps] [dt] [direct|fmm] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "failed.h"

enum { N = 240 };
static const double HEIGHT = 1;

/* A flow of one ring above a plane, or of two rings without it. */
static wfmm_flow *flow_of(int rings, int method) {
    static double x[2 * N][3], gamma[2 * N], core[2 * N];
    static int32_t ends[2 * N][2];
    wfmm_plan_options sums;
    wfmm_flow *flow = NULL;
    if (failed(wfmm_plan_options_init(&sums, sizeof sums))) exit(1);
    sums.method = method, sums.tolerance = 1e-6;
    if (rings == 1) sums.plane_axis = 3;
    for (int i = 0; i < rings * N; i++) {
        const int ring = i / N, k = i % N;
        const double phi = 2 * acos(-1) * k / N, side = ring ? -1 : 1;
        x[i][0] = cos(phi), x[i][1] = sin(phi), x[i][2] = side * HEIGHT;
        /* the upper ring sinks, the lower one rises */
        ends[i][0] = i, ends[i][1] = ring * N + (k + 1) % N, gamma[i] = -side, core[i] = 0.1;
    }
    if (failed(wfmm_flow_create(NULL, &sums, NULL, &flow))) exit(1);
    if (failed(wfmm_flow_set_filaments_f64(flow, rings * N, x[0], rings * N, 2, ends[0], gamma, core, WFMM_MEMORY_HOST))) exit(1);
    return flow;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 400, every = steps > 40 ? steps / 40 : 1;
    const double dt = argc > 2 ? atof(argv[2]) : 0.02;
    const int fmm = argc > 3 && !strcmp(argv[3], "fmm"), method = fmm ? WFMM_METHOD_FMM : WFMM_METHOD_DIRECT;
    static double above[N][3], both[2 * N][3];
    wfmm_flow *plane = flow_of(1, method), *mirror = flow_of(2, method);
    double worst = 0;
    printf("RK4, dt = %g, %s\n  time   height   radius   difference\n", dt, fmm ? "FMM at 1e-6" : "direct sums");
    for (int step = 0; step <= steps; step += every) {
        double z = 0, r = 0, difference = 0, time = 0;
        if (step && (failed(wfmm_flow_advance(plane, dt, every)) || failed(wfmm_flow_advance(mirror, dt, every)))) return 1;
        if (failed(wfmm_flow_get_f64(plane, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, N, above[0], NULL, WFMM_MEMORY_HOST)) ||
            failed(wfmm_flow_get_f64(mirror, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, 2 * N, both[0], NULL, WFMM_MEMORY_HOST)) ||
            failed(wfmm_flow_time(plane, &time, NULL)))
            return 1;
        for (int k = 0; k < N; k++) {
            z += above[k][2] / N, r += hypot(above[k][0], above[k][1]) / N;
            for (int i = 0; i < 3; i++) difference = fmax(difference, fabs(above[k][i] - both[k][i]));
        }
        worst = fmax(worst, difference);
        printf("%6.2f  %.5f  %.5f  %.1e\n", time, z, r, difference);
    }
    printf("largest difference of the two: %.1e\n", worst);
    return failed(wfmm_flow_destroy(&plane)) || failed(wfmm_flow_destroy(&mirror)) || !(fmm || worst < 1e-9);
}
