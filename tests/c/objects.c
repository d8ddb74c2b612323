/* Sessions, plans and the library: life, queries, changes of sources and targets. Twin: tests/fortran/objects.f90. */
#include "check.h"

enum { N = 300, M = 200 };
static double position[3 * N], strength[3 * N], charge[N], target[3 * M];

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void fill(void) {
    uint64_t state = 1;
    for (int i = 0; i < 3 * N; i++) position[i] = uniform(&state), strength[i] = uniform(&state) - 0.5;
    for (int i = 0; i < N; i++) charge[i] = uniform(&state) - 0.5;
    for (int i = 0; i < 3 * M; i++) target[i] = uniform(&state);
}

static void the_library_tells_its_version(void) {
    int32_t major = -1, minor = -1, patch = -1;
    CHECK(wfmm_abi_version() == WFMM_ABI_VERSION);
    OK(wfmm_version(&major, &minor, &patch));
    CHECK(major == WFMM_VERSION_MAJOR && minor == WFMM_VERSION_MINOR && patch == WFMM_VERSION_PATCH);
    OK(wfmm_version(NULL, NULL, NULL));
    CHECK(strcmp(wfmm_status_name(WFMM_ERR_BUSY), "WFMM_ERR_BUSY") == 0);
    CHECK(strcmp(wfmm_status_name(WFMM_OK), "WFMM_OK") == 0);
    CHECK(wfmm_status_name(12345) != NULL);
}

static void messages_fit_any_buffer(void) {
    char small[5] = "....";
    size_t length = 0;
    EXPECT(wfmm_plan_prepare(NULL), WFMM_ERR_NULL, "plan is NULL");
    OK(wfmm_last_error(NULL, 0, &length));
    CHECK(length > 20);
    OK(wfmm_last_error(small, sizeof small, NULL));
    CHECK(strcmp(small, "wfmm") == 0);
    EXPECT(wfmm_last_error(NULL, 7, NULL), WFMM_ERR_NULL, "buf");
    OK(wfmm_last_error_set("mine", 4));
    CHECK(strcmp(last_error(), "mine") == 0);
    EXPECT(wfmm_last_error_set(NULL, 4), WFMM_ERR_NULL, "message");
}

static int lines = 0;
static void count_lines(int32_t level, const char *message, void *user) {
    lines += level == WFMM_LOG_INFO && strlen(message) > 0 && user == &lines;
}

static void the_log_goes_to_the_host(void) {
    wfmm_session *s = NULL;
    OK(wfmm_log_set(WFMM_LOG_INFO, count_lines, &lines));
    OK(wfmm_session_create(NULL, &s));
    CHECK(lines > 0);
    int before = lines;
    OK(wfmm_log_set(WFMM_LOG_OFF, count_lines, &lines));
    OK(wfmm_session_destroy(&s));
    OK(wfmm_session_create(NULL, &s));
    CHECK(lines == before);
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
    OK(wfmm_session_destroy(&s));
    EXPECT(wfmm_log_set(77, NULL, NULL), WFMM_ERR_CONSTANT, "77");
}

static void sessions_live_as_long_as_their_plans(void) {
    wfmm_session_options o;
    OK(wfmm_session_options_init(&o, sizeof o));
    CHECK(o.struct_size == sizeof o && o.backend == WFMM_BACKEND_AUTO && o.device == -1 && o.threads == 0 && o.flags == 0);
    o.threads = 1;
    o.backend = WFMM_BACKEND_CPU;
    wfmm_session *s = NULL;
    wfmm_plan *p = NULL;
    OK(wfmm_session_create(&o, &s));
    char line[200];
    OK(wfmm_session_describe(s, line, sizeof line, NULL));
    CHECK(strstr(line, "1 thread") != NULL);
    OK(wfmm_plan_create(s, NULL, &p));
    wfmm_session *copy = s;
    OK(wfmm_session_destroy(&s));
    CHECK(s == NULL);
    OK(wfmm_session_destroy(&s));
    EXPECT(wfmm_session_describe(copy, line, sizeof line, NULL), WFMM_ERR_HANDLE, "no live session");
    double u[3];
    OK(wfmm_plan_set_particles_f64(p, 1, position, strength, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, 1, target, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST));
    wfmm_plan *old = p;
    OK(wfmm_plan_destroy(&p));
    CHECK(p == NULL);
    OK(wfmm_plan_destroy(&p));
    EXPECT(wfmm_plan_destroy(&old), WFMM_ERR_HANDLE, "no live plan");
    EXPECT(wfmm_plan_evaluate_f64(old, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_HANDLE, "no live plan");
}

static void sum_particles(const double *a, const double *x, double u[3]) {
    OK(wfmm_induce_particles_f64(N, position, a, NULL, 1, x, NULL, u, NULL));
}

static void sources_and_targets_change_one_by_one(void) {
    static double u[3 * M], v[3 * M], g[9 * M], other[3 * N], phi[M];
    wfmm_plan *p = NULL;
    double one[3];
    OK(wfmm_plan_create(NULL, NULL, &p));
    OK(wfmm_plan_set_particles_f64(p, N, position, strength, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_AUTO));
    OK(wfmm_plan_prepare(p));
    OK(wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST));
    sum_particles(strength, target + 3 * (M - 1), one);
    for (int i = 0; i < 3; i++) CHECK(fabs(u[3 * (M - 1) + i] - one[i]) < 1e-3 * (fabs(one[0]) + fabs(one[1]) + fabs(one[2])));
    /* new strengths: twice as strong */
    for (int i = 0; i < 3 * N; i++) other[i] = 2 * strength[i];
    OK(wfmm_plan_set_strengths_f64(p, 0, NULL, N, other, 0, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST));
    for (int i = 0; i < 3 * M; i++) CHECK(fabs(v[i] - 2 * u[i]) <= 1e-3 * fabs(2 * u[i]) + 1e-3);
    /* fewer targets: the tail is not written */
    v[3] = 77;
    OK(wfmm_plan_set_targets_f64(p, 1, target + 3 * (M - 1), WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST));
    CHECK(v[3] == 77);
    for (int i = 0; i < 3; i++) CHECK(fabs(v[i] - 2 * one[i]) < 2e-3 * (fabs(one[0]) + fabs(one[1]) + fabs(one[2])));
    /* segments add to particles */
    const double points[6] = {0, 0, -1, 0, 0, 1}, gamma[1] = {1};
    const int32_t ends[2] = {0, 1};
    double both[3], alone[3];
    OK(wfmm_induce_segments_f64(2, points, 1, 2, ends, gamma, NULL, 1, target + 3 * (M - 1), NULL, alone, NULL));
    OK(wfmm_plan_set_segments_f64(p, 2, points, 1, 2, ends, gamma, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, both, NULL, WFMM_MEMORY_HOST));
    for (int i = 0; i < 3; i++) CHECK(fabs(both[i] - v[i] - alone[i]) < 1e-3 * (fabs(both[i]) + fabs(v[i]) + 1e-3));
    /* removed again, both: zero velocity */
    OK(wfmm_plan_set_segments_f64(p, 0, NULL, 0, 2, NULL, NULL, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_particles_f64(p, 0, NULL, NULL, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, both, NULL, WFMM_MEMORY_HOST));
    CHECK(both[0] == 0 && both[1] == 0 && both[2] == 0);
    int64_t counts[4];
    OK(wfmm_plan_counts(p, &counts[0], &counts[1], &counts[2], &counts[3]));
    CHECK(counts[0] == 0 && counts[1] == 0 && counts[2] == 0 && counts[3] == 1);
    /* no targets: ok, nothing written */
    OK(wfmm_plan_set_targets_f64(p, 0, NULL, WFMM_MEMORY_HOST));
    both[0] = 5;
    OK(wfmm_plan_evaluate_f64(p, both, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, NULL, NULL, WFMM_MEMORY_HOST));
    CHECK(both[0] == 5);
    /* charges beside them */
    OK(wfmm_plan_set_charges_f64(p, N, position, charge, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_charges_f64(p, 0, NULL, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST));
    CHECK(phi[0] == 0 && phi[M - 1] == 0);
    OK(wfmm_plan_destroy(&p));
}

static void a_plan_tells_what_it_did(void) {
    static float u[3 * M], pf[3 * N], af[3 * N], xf[3 * M];
    for (int i = 0; i < 3 * N; i++) pf[i] = (float)position[i], af[i] = (float)strength[i];
    for (int i = 0; i < 3 * M; i++) xf[i] = (float)target[i];
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    CHECK(o.struct_size == sizeof o && o.tolerance == 1e-4 && o.index_base == 0 && o.core_radius == 0);
    CHECK(o.segment_regularization == WFMM_REG_VATISTAS && o.particle_regularization == WFMM_REG_GAUSS_ERF);
    CHECK(close_to(o.normalization, 0.25 / 3.14159265358979323846, 1e-15));
    o.tolerance = 1e-3;
    wfmm_plan *p = NULL;
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_particles_f32(p, N, pf, af, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_strengths_f32(p, 0, NULL, N, af, 0, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f32(p, M, xf, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f32(p, u, NULL, WFMM_MEMORY_HOST));
    float e32 = -1;
    double e64 = -1;
    OK(wfmm_plan_check_f32(p, 50, 1, &e32));
    OK(wfmm_plan_check_f64(p, 50, 1, &e64));
    CHECK(e32 >= 0 && e32 <= 1e-3f && e64 >= 0 && e64 <= 1e-3);
    wfmm_report r;
    r.struct_size = sizeof r;
    OK(wfmm_plan_report(p, &r));
    CHECK(r.backend == WFMM_BACKEND_CPU || r.backend == WFMM_BACKEND_CUDA);
    CHECK(r.method >= WFMM_METHOD_DIRECT && r.near_pairs > 0 && r.precision == WFMM_PRECISION_F32);
    CHECK(r.seconds[WFMM_PASS_TOTAL] > 0);
    uint64_t host = 0, device = 1;
    OK(wfmm_plan_workspace(p, &host, &device));
    CHECK(host >= sizeof pf + sizeof af + sizeof xf);
    char why[4096];
    size_t length = 0;
    OK(wfmm_plan_recipe(p, why, sizeof why, &length));
    CHECK(length > 20 && strlen(why) == length);
    /* double arrays make it compute in double */
    OK(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f32(p, u, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_report(p, &r));
    CHECK(r.precision == WFMM_PRECISION_F64);
    OK(wfmm_plan_destroy(&p));
}

static void a_large_tolerance_is_told(void) {
    static double u[3 * M];
    const double asked[3] = {0.5, 0.1, 0.05};
    for (int k = 0; k < 3; k++) {
        wfmm_plan_options o;
        wfmm_plan *p = NULL;
        char why[4096];
        OK(wfmm_plan_options_init(&o, sizeof o));
        o.tolerance = asked[k], o.core_radius = 0.01;
        OK(wfmm_plan_create(NULL, &o, &p));
        OK(wfmm_plan_set_particles_f64(p, N, position, strength, NULL, WFMM_MEMORY_HOST));
        OK(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST));
        OK(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST));
        OK(wfmm_plan_recipe(p, why, sizeof why, NULL));
        CHECK((strstr(why, "The tolerance is 0.1, the largest that is used.") != NULL) == (asked[k] >= 0.1));
        OK(wfmm_plan_destroy(&p));
    }
}

static void structs_of_other_versions(void) {
    struct { wfmm_plan_options o; uint64_t later[2]; } newer;
    OK(wfmm_plan_options_init(&newer.o, sizeof newer));
    CHECK(newer.o.struct_size == sizeof newer && newer.later[0] == 0 && newer.later[1] == 0);
    wfmm_plan *p = NULL;
    OK(wfmm_plan_create(NULL, &newer.o, &p));
    OK(wfmm_plan_destroy(&p));
    newer.later[1] = 1;
    EXPECT(wfmm_plan_create(NULL, &newer.o, &p), WFMM_ERR_TOO_NEW, "newer");
    newer.o.struct_size = 0;
    EXPECT(wfmm_plan_create(NULL, &newer.o, &p), WFMM_ERR_STRUCT_SIZE, "struct_size = 0");
    wfmm_plan_options older;
    memset(&older, 0xff, sizeof older);
    OK(wfmm_plan_options_init(&older, 32));
    CHECK(older.struct_size == 32 && older.index_base == 0 && isnan(older.tolerance));
    OK(wfmm_plan_create(NULL, &older, &p)); /* what lies behind its end is not read */
    OK(wfmm_plan_destroy(&p));
    EXPECT(wfmm_plan_options_init(NULL, 64), WFMM_ERR_NULL, "options");
    EXPECT(wfmm_plan_options_init(&older, 3), WFMM_ERR_STRUCT_SIZE, "3");
    EXPECT(wfmm_session_options_init(NULL, 24), WFMM_ERR_NULL, "options");
    CHECK(p == NULL);
}

int main(void) {
    fill();
    the_library_tells_its_version();
    messages_fit_any_buffer();
    the_log_goes_to_the_host();
    sessions_live_as_long_as_their_plans();
    sources_and_targets_change_one_by_one();
    a_plan_tells_what_it_did();
    a_large_tolerance_is_told();
    structs_of_other_versions();
    return finish("objects");
}
