/* A vortex ring of 64 segments and the velocity in its centre, which theory says is Gamma/(2 R).
   cc hello.c $(pkg-config --cflags --libs wakefmm) -lm */
#include <math.h>
#include <stdio.h>
#include <wakefmm.h>
enum { N = 64 };
int main(void) {
    double x[N][3], gamma[N], centre[3] = {0, 0, 0}, u[3];
    int32_t ends[N][2];
    for (int i = 0; i < N; ++i) {
        double phi = 2 * acos(-1) * i / N;
        x[i][0] = cos(phi), x[i][1] = sin(phi), x[i][2] = 0;
        ends[i][0] = i, ends[i][1] = (i + 1) % N, gamma[i] = 1;
    }
    wfmm_status s = wfmm_induce_segments_f64(N, x[0], N, 2, ends[0], gamma, NULL, 1, centre, NULL, u, NULL);
    char message[512] = "";
    if (s) wfmm_last_error(message, sizeof message, NULL), fprintf(stderr, "%s: %s\n", wfmm_status_name(s), message);
    else printf("u = %.6f %.6f %.6f, theory 0 0 0.5\n", u[0], u[1], u[2]);
    return s != WFMM_OK || fabs(u[2] - 0.5) > 1e-3;
}
