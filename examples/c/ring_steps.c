/* A vortex ring and the fluid around it, moved by Euler steps with the FMM and with direct sums: how far apart do they get?
   The case of Hu et al. 2012, Fig. 16, whose ring has 16,384 elements and 32,768 particles; here by default fewer.
   Prints by step the relative L2 difference of the velocities at fixed points and of the ways that tracers have gone, and where the
   ring is. Leaves 1 where that of the velocities was ever above ten tolerances.
   cc ring_steps.c $(pkg-config --cflags --libs wakefmm) -lm && ./a.out [steps] [elements] [tolerance] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "failed.h"

enum { PROBES = 1000 };
static const double RADIUS = 0.3, CORE = 0.02, DT = 2e-3;

/* Points in the unit cube around the ring, the same in every run. */
static void scatter(int n, double (*x)[3]) {
    static unsigned long long state = 88172645463325252ull;
    for (int i = 0; i < 3 * n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        x[i / 3][i % 3] = (double)(state >> 11) / 9007199254740992.0 - 0.5;
    }
}

/* A ring of n segments of circulation 1 around the z axis, and m tracers. */
static wfmm_flow *flow_of(int n, int m, double (*tracers)[3], int method, double tolerance) {
    double(*x)[3] = malloc(n * sizeof *x), *gamma = malloc(n * sizeof *gamma), *core = malloc(n * sizeof *core);
    int32_t(*ends)[2] = malloc(n * sizeof *ends);
    wfmm_plan_options sums;
    wfmm_flow_options motion;
    wfmm_flow *flow = NULL;
    if (!x || !gamma || !core || !ends) exit(1);
    if (failed(wfmm_plan_options_init(&sums, sizeof sums)) || failed(wfmm_flow_options_init(&motion, sizeof motion))) exit(1);
    sums.method = method, sums.tolerance = tolerance;
    motion.integrator = WFMM_INTEGRATOR_EULER;
    for (int k = 0; k < n; k++) {
        const double phi = 2 * acos(-1) * k / n;
        x[k][0] = RADIUS * cos(phi), x[k][1] = RADIUS * sin(phi), x[k][2] = 0;
        ends[k][0] = k, ends[k][1] = (k + 1) % n, gamma[k] = 1, core[k] = CORE;
    }
    if (failed(wfmm_flow_create(NULL, &sums, &motion, &flow)) ||
        failed(wfmm_flow_set_filaments_f64(flow, n, x[0], n, 2, ends[0], gamma, core, WFMM_MEMORY_HOST)) ||
        failed(wfmm_flow_set_tracers_f64(flow, m, tracers[0], WFMM_MEMORY_HOST)))
        exit(1);
    free(x), free(gamma), free(core), free(ends);
    return flow;
}

/* Relative L2 difference of a and b, both relative to c where it is given. */
static double difference(int n, double (*a)[3], double (*b)[3], double (*c)[3]) {
    double apart = 0, size = 0;
    for (int i = 0; i < 3 * n; i++) {
        const double way = b[i / 3][i % 3] - (c ? c[i / 3][i % 3] : 0), other = a[i / 3][i % 3] - b[i / 3][i % 3];
        apart += other * other, size += way * way;
    }
    return size > 0 ? sqrt(apart / size) : 0;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 500, n = argc > 2 ? atoi(argv[2]) : 2048, m = 2 * n;
    const double tolerance = argc > 3 ? atof(argv[3]) : 1e-6;
    const int every = steps >= 10 ? steps / 10 : 1;
    if (steps < 1 || n < 8) return fprintf(stderr, "at least 1 step and 8 elements\n"), 1;
    double(*start)[3] = malloc(m * sizeof *start), (*x)[2][3] = malloc(m * sizeof *x), (*ring)[3] = malloc(n * sizeof *ring), worst = 0;
    static double probes[PROBES][3], u[2][PROBES][3];
    if (!start || !x || !ring) return 1;
    double(*position[2])[3] = {(double(*)[3])x, (double(*)[3])x + m};
    scatter(m, start), scatter(PROBES, probes);
    wfmm_flow *flows[2] = {flow_of(n, m, start, WFMM_METHOD_FMM, tolerance), flow_of(n, m, start, WFMM_METHOD_DIRECT, tolerance)};
    printf("%d elements, %d tracers, Euler, dt = %g, tolerance %g\n step   velocity   way       z\n", n, m, DT, tolerance);
    for (int step = 0; step <= steps; step += every) {
        for (int k = 0; k < 2; k++)
            if ((step && failed(wfmm_flow_advance(flows[k], DT, every))) ||
                failed(wfmm_flow_velocity_f64(flows[k], PROBES, probes[0], u[k][0], NULL, WFMM_MEMORY_HOST)) ||
                failed(wfmm_flow_get_f64(flows[k], WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, m, position[k][0], NULL, WFMM_MEMORY_HOST)))
                return 1;
        double z = 0;
        if (failed(wfmm_flow_get_f64(flows[1], WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, n, ring[0], NULL, WFMM_MEMORY_HOST))) return 1;
        for (int k = 0; k < n; k++) z += ring[k][2] / n;
        const double velocity = difference(PROBES, u[0], u[1], NULL);
        worst = fmax(worst, velocity);
        printf("%5d   %.1e   %.1e   %.3f\n", step, velocity, difference(m, position[0], position[1], start), z);
    }
    free(start), free(x), free(ring);
    return failed(wfmm_flow_destroy(&flows[0])) || failed(wfmm_flow_destroy(&flows[1])) || !(worst < 10 * tolerance);
}
