/* The speed of a thin vortex ring beside Saffman's U = Γ/(4πR) (ln(8R/a) - 0.558) for a Gaussian core exp(-r²/a²) (P. G. Saffman,
   The velocity of viscous vortex rings, Stud. Appl. Math. 49 (1970) 371). The core is filled with rings of vortex particles, whose own
   Gaussian cores and weights together have the deviation a/√2; strengths are stretched. Γ = R = 1.
   Prints for each core the speed at the start, that of the way after some time, and Saffman's. Leaves 1 where the thinnest is 2 % off.
   cc thin_ring.c $(pkg-config --cflags --libs wakefmm) -lm && ./a.out [thinnest a/R, 0.05 or more] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "failed.h"

/* Circles of particles around the middle of the core, particles on the innermost circle's angle grid. */
enum { CIRCLES = 9, AROUND = 12, LINES = CIRCLES * AROUND };
static const double PI = 3.14159265358979323846;

typedef struct { double radius, z, weight; } line;

/* The rings of particles that fill a core of deviation a/√2, weights with the sum 1; the particles' own core. */
static double fill(double a, line *lines) {
    const double deviation = a / sqrt(2), core = 0.5 * deviation, spread2 = deviation * deviation - core * core, h = 0.4 * deviation;
    double sum = 0;
    for (int c = 0; c < CIRCLES; c++)
        for (int k = 0; k < AROUND; k++) {
            const double r = (c + 0.5) * h, angle = 2 * PI * k / AROUND;
            lines[c * AROUND + k] = (line){1 + r * cos(angle), r * sin(angle), r * exp(-0.5 * r * r / spread2)};
            sum += lines[c * AROUND + k].weight;
        }
    for (int k = 0; k < LINES; k++) lines[k].weight /= sum;
    return core;
}

/* Height of the centre of vorticity: particles of a line stay together. */
static double height(const double (*x)[3], const line *lines, int around) {
    double z = 0;
    for (int k = 0; k < LINES; k++) z += lines[k].weight * x[(size_t)k * around][2];
    return z;
}

/* Speed at the start and of the way in `steps` steps, or nonzero. */
static int speeds(double a, int steps, double dt, double *start, double *mean) {
    line lines[LINES];
    const double core = fill(a, lines);
    const int around = (int)(15 / a); /* a distance of 0.8 of the particles' cores on the ring */
    const int64_t n = (int64_t)LINES * around;
    double(*x)[3] = malloc(n * sizeof *x), (*strength)[3] = malloc(n * sizeof *strength), (*u)[3] = malloc(n * sizeof *u);
    double *cores = malloc(n * sizeof *cores);
    wfmm_plan_options sums;
    wfmm_flow_options options;
    wfmm_flow *flow = NULL;
    int bad = !x || !strength || !u || !cores;
    for (int64_t i = 0; !bad && i < n; i++) {
        const line l = lines[i / around];
        const double phi = 2 * PI * (double)(i % around) / around, length = 2 * PI * l.radius / around;
        x[i][0] = l.radius * cos(phi), x[i][1] = l.radius * sin(phi), x[i][2] = l.z;
        strength[i][0] = -l.weight * length * sin(phi), strength[i][1] = l.weight * length * cos(phi), strength[i][2] = 0;
        cores[i] = core;
    }
    bad = bad || failed(wfmm_plan_options_init(&sums, sizeof sums)) || failed(wfmm_flow_options_init(&options, sizeof options));
    if (!bad) sums.tolerance = 1e-4, options.stretching = WFMM_STRETCHING_TRANSPOSE;
    bad = bad || failed(wfmm_flow_create(NULL, &sums, &options, &flow)) ||
          failed(wfmm_flow_set_particles_f64(flow, n, x[0], strength[0], cores, WFMM_MEMORY_HOST)) ||
          failed(wfmm_flow_get_f64(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_VELOCITY, n, u[0], NULL, WFMM_MEMORY_HOST)) ||
          failed(wfmm_flow_advance(flow, dt, steps)) ||
          failed(wfmm_flow_get_f64(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_POSITION, n, x[0], NULL, WFMM_MEMORY_HOST));
    if (!bad) *start = height(u, lines, around), *mean = height(x, lines, around) / (steps * dt);
    free(x), free(strength), free(u), free(cores);
    return failed(wfmm_flow_destroy(&flow)) || bad;
}

int main(int argc, char **argv) {
    const double thinnest = argc > 1 ? atof(argv[1]) : 0.05;
    double off = 1;
    if (!(thinnest >= 0.0499 && thinnest <= 0.4)) return fprintf(stderr, "a/R from 0.05 to 0.4\n"), 1;
    printf("  a/R     particles  speed     of the way  Saffman   ratio\n");
    for (double a = 0.4; a > 0.999 * thinnest; a /= sqrt(2)) {
        const double saffman = (log(8 / a) - 0.558) / (4 * PI), turn = 4 * PI * PI * a * a; /* of the core's middle: 2 a² (2π)²/(2Γ) */
        double start, mean;
        if (speeds(a, 8, turn / 32, &start, &mean)) return 1;
        off = fabs(mean / saffman - 1);
        printf("  %.4f  %9d  %.5f   %.5f     %.5f   %.4f\n", a, LINES * (int)(15 / a), start, mean, saffman, mean / saffman);
    }
    return !(off < 0.02);
}
