/* Two coaxial vortex rings that pass through each other in turn, kept in a flow. Prints where they are and how far impulse and
   total strength have drifted; leaves 1 where the impulse drifts by more than 1e-3.
   cc leapfrog_rings.c $(pkg-config --cflags --libs wakefmm) -lm && ./a.out [steps] [dt] [euler|ab2|rk3|rk4] [direct|fmm] [segments a ring] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "failed.h"

enum { MOST = 20000 };

/* Radius and position along z of one ring. */
static void mean(const double *x, int n, double *radius, double *z) {
    *radius = *z = 0;
    for (int k = 0; k < n; k++) *radius += hypot(x[3 * k], x[3 * k + 1]) / n, *z += x[3 * k + 2] / n;
}

int main(int argc, char **argv) {
    const char *names[4] = {"euler", "ab2", "rk3", "rk4"};
    const int steps = argc > 1 ? atoi(argv[1]) : 1000, every = steps > 40 ? steps / 40 : 1;
    const double dt = argc > 2 ? atof(argv[2]) : 0.01;
    const int n = argc > 5 ? atoi(argv[5]) : 200;
    static double x[2 * MOST][3], gamma[2 * MOST], core[2 * MOST];
    static int32_t ends[2 * MOST][2];
    wfmm_plan_options sums;
    wfmm_flow_options options;
    wfmm_flow *flow = NULL;
    if (n < 3 || n > MOST) return fprintf(stderr, "3 to %d segments a ring\n", MOST), 1;
    if (failed(wfmm_plan_options_init(&sums, sizeof sums)) || failed(wfmm_flow_options_init(&options, sizeof options))) return 1;
    for (int k = 0; argc > 3 && k < 4; k++) if (!strcmp(argv[3], names[k])) options.integrator = k;
    sums.method = argc > 4 && !strcmp(argv[4], "fmm") ? WFMM_METHOD_FMM : WFMM_METHOD_DIRECT;
    sums.tolerance = 1e-6;
    for (int ring = 0; ring < 2; ring++)
        for (int k = 0; k < n; k++) {
            const double phi = 2 * acos(-1) * k / n;
            const int i = ring * n + k;
            x[i][0] = cos(phi), x[i][1] = sin(phi), x[i][2] = ring * 0.5, gamma[i] = 1, core[i] = 0.1;
            ends[i][0] = i, ends[i][1] = ring * n + (k + 1) % n;
        }
    if (failed(wfmm_flow_create(NULL, &sums, &options, &flow))) return 1;
    if (failed(wfmm_flow_set_filaments_f64(flow, 2 * n, x[0], 2 * n, 2, ends[0], gamma, core, WFMM_MEMORY_HOST))) return 1;
    wfmm_diagnostics d;
    double first = 0, drift = 0, worst = 0;
    wfmm_diagnostics_init(&d, sizeof d);
    printf("%s, dt = %g, %d segments, %s\n  time   R1      z1      R2      z2      impulse drift  total strength\n", names[options.integrator], dt, 2 * n,
           sums.method == WFMM_METHOD_FMM ? "FMM at 1e-6" : "direct sums");
    for (int step = 0; step <= steps; step += every) {
        if (step && failed(wfmm_flow_advance(flow, dt, every))) return 1;
        if (failed(wfmm_flow_diagnostics(flow, &d))) return 1;
        if (failed(wfmm_flow_get_f64(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, 2 * n, x[0], NULL, WFMM_MEMORY_HOST))) return 1;
        double r[2], z[2];
        mean(x[0], n, &r[0], &z[0]), mean(x[n], n, &r[1], &z[1]);
        if (step == 0) first = d.linear_impulse[2];
        drift = d.linear_impulse[2] / first - 1;
        if (fabs(drift) > worst) worst = fabs(drift);
        printf("%6.2f  %.4f  %.4f  %.4f  %.4f  %+.3e     %.1e\n", d.time, r[0], z[0], r[1], z[1], drift,
               fabs(d.total_strength[0]) + fabs(d.total_strength[1]) + fabs(d.total_strength[2]));
        fflush(stdout);
    }
    printf("largest drift of the impulse: %.3e\n", worst);
    return failed(wfmm_flow_destroy(&flow)) || !(worst < 1e-3);
}
