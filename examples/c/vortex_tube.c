/* A straight tube of vorticity that viscosity spreads, beside the vortex of Lamb and Oseen: u = Γ/(2πr) (1 - exp(-r²/(4νt'))), where t'
   counts from a line vortex. One line of Gaussian particles, whose cores grow by d(c²)/dt = 2ν; its ends are far away. Γ = 1, ν = 0.001.
   Prints the swirl at some times and distances and the largest difference; leaves 1 where it exceeds 0.2 % of the exact swirl.
   cc vortex_tube.c $(pkg-config --cflags --libs wakefmm) -lm && ./a.out */
#include <math.h>
#include <stdio.h>
#include "failed.h"

enum { N = 600, TARGETS = 20 };
static const double PI = 3.14159265358979323846, NU = 1e-3, CORE = 0.1, SPACING = 0.05;

int main(void) {
    static double x[N][3], strength[N][3], core[N], at[TARGETS][3], u[TARGETS][3];
    wfmm_plan_options sums;
    wfmm_flow_options options;
    wfmm_flow *flow = NULL;
    double worst = 0;
    if (failed(wfmm_plan_options_init(&sums, sizeof sums)) || failed(wfmm_flow_options_init(&options, sizeof options))) return 1;
    sums.tolerance = 1e-6;
    options.spreading = WFMM_SPREADING_CORES, options.viscosity = NU;
    for (int i = 0; i < N; i++) x[i][2] = (i + 0.5 - 0.5 * N) * SPACING, strength[i][2] = SPACING, core[i] = CORE;
    for (int i = 0; i < TARGETS; i++) at[i][0] = 0.03 * (i + 1);
    if (failed(wfmm_flow_create(NULL, &sums, &options, &flow))) return 1;
    if (failed(wfmm_flow_set_particles_f64(flow, N, x[0], strength[0], core, WFMM_MEMORY_HOST))) return 1;
    printf("  time   radius  swirl     exact     difference\n");
    for (int k = 0; k < 4; k++) {
        double time, exact;
        if (k && failed(wfmm_flow_advance(flow, 0.5, 20))) return 1;
        if (failed(wfmm_flow_time(flow, &time, NULL))) return 1;
        if (failed(wfmm_flow_velocity_f64(flow, TARGETS, at[0], u[0], NULL, WFMM_MEMORY_HOST))) return 1;
        for (int i = 0; i < TARGETS; i++) {
            const double r = at[i][0], age = time + CORE * CORE / (2 * NU);
            exact = (1 - exp(-r * r / (4 * NU * age))) / (2 * PI * r);
            worst = fmax(worst, fabs(u[i][1] / exact - 1));
            printf("  %4.0f   %.2f    %.5f   %.5f   %+.1e\n", time, r, u[i][1], exact, u[i][1] / exact - 1);
        }
    }
    printf("largest difference: %.1e\n", worst);
    return failed(wfmm_flow_destroy(&flow)) || !(worst < 2e-3);
}
