/* The calls that exist twice, for REAL float and double. */

/* An array of exactly n numbers; NULL now and then. */
static REAL *TWIN(array)(size_t n) {
    if (take() % 64 == 63) return NULL;
    double *x = values(n);
    REAL *to = room(n * sizeof *to);
    for (size_t i = 0; i < n; ++i) to[i] = (REAL)x[i];
    free(x);
    return to;
}
/* Core radii: mostly none or small. */
static REAL *TWIN(radii)(size_t n) {
    const unsigned how = take();
    if (how % 4 == 0) return NULL;
    if (how % 4 == 1) return TWIN(array)(n);
    REAL *to = room(n * sizeof *to);
    for (size_t i = 0; i < n; ++i) to[i] = (REAL)((how >> 2) * 0.01 * (double)(i % 3));
    return to;
}

static void TWIN(set_segments)(void) {
    const int64_t n_points = count(), n = count();
    const unsigned wide = take();
    /* One row may be as long as it likes: only its first two numbers are read. */
    const int64_t ld = wide < 200 ? 2 + (int64_t)(wide % 3) : n == 1 || n < 0 || n > MOST ? count() : (int64_t)(wide % 3) - 1;
    const int32_t *rows = ends(length(n), n == 1 || ld < 2 || ld > 4 ? 2 : (size_t)ld, n_points);
    const REAL *x = TWIN(array)(3 * length(n_points)), *gamma = TWIN(array)(length(n));
    DO(TWIN(wfmm_plan_set_segments)(plan, n_points, x, n, ld, take() % 64 == 63 ? NULL : rows, gamma, TWIN(radii)(length(n)), memory()));
}
static void TWIN(set_particles)(void) {
    const int64_t n = count();
    const REAL *x = TWIN(array)(3 * length(n)), *a = take() % 16 == 15 ? x : TWIN(array)(3 * length(n));
    DO(TWIN(wfmm_plan_set_particles)(plan, n, x, a, TWIN(radii)(length(n)), memory()));
}
static void TWIN(set_strengths)(void) {
    /* The counts that were set, or others. */
    int64_t n[4] = {0, 0, 0, 0};
    if (plan) DO(wfmm_plan_counts(plan, n, n + 1, n + 2, n + 3));
    const unsigned which = take();
    for (int k = 0; k < 3; ++k)
        if (which & (8u << k)) n[k] = count();
    DO(TWIN(wfmm_plan_set_strengths)(plan, n[0], which & 1 ? TWIN(array)(length(n[0])) : NULL, n[1], which & 2 ? TWIN(array)(3 * length(n[1])) : NULL,
                                     n[2], which & 4 ? TWIN(array)(length(n[2])) : NULL, memory()));
}
/* Outputs of exactly the length that is written, apart, overlapping or missing. */
static void TWIN(evaluate)(unsigned how) {
    int64_t m = 0;
    if (plan) DO(wfmm_plan_counts(plan, NULL, NULL, NULL, &m));
    const size_t components = how == 1 ? 1 : 3, more = how == 1 ? 3 : 9;
    const unsigned b = take();
    REAL *both = room((components + more) * (size_t)m * sizeof *both), *main = both, *gradient = NULL;
    memset(both, 0, (components + more) * (size_t)m * sizeof *both);
    if (b & 1) gradient = both + components * (size_t)m;
    if (b & 2 && m) gradient = both + take() % (components * (size_t)m);
    if (b % 64 == 63) main = NULL;
    switch (how) {
    case 0: DO(TWIN(wfmm_plan_evaluate)(plan, main, gradient, memory())); break;
    case 1: DO(TWIN(wfmm_plan_evaluate_potential)(plan, main, gradient, memory())); break;
    default:
        if (b & 4) { /* the host does something else meanwhile, all of which must be refused */
            const wfmm_status s = TWIN(wfmm_plan_evaluate_async)(plan, main, gradient, memory());
            judge("evaluate_async", s);
            if (s == WFMM_OK && b & 8) DO(TWIN(wfmm_plan_evaluate)(plan, main, gradient, 0));
            DO(wfmm_plan_wait(plan));
        } else {
            REAL e;
            DO(TWIN(wfmm_plan_check)(plan, count(), b, b & 16 ? NULL : &e));
        }
    }
}
/* One call, nothing kept; the output may be the array of the targets or of the sources. */
static void TWIN(induce)(void) {
    const int64_t n = count(), m = count();
    wfmm_plan_options o;
    options(&o);
    if (o.struct_size > sizeof o) o.struct_size = sizeof o;
    const unsigned b = take();
    const REAL *y = TWIN(array)(3 * length(m));
    REAL *u = b & 1 && y ? (REAL *)y : room(3 * length(m) * sizeof *u), *g = b & 2 ? room(9 * length(m) * sizeof *g) : NULL;
    if (!(b & 1)) memset(u, 0, 3 * length(m) * sizeof *u);
    if (g) memset(g, 0, 9 * length(m) * sizeof *g);
    if (b & 4) {
        DO(TWIN(wfmm_induce_particles)(n, TWIN(array)(3 * length(n)), TWIN(array)(3 * length(n)), TWIN(radii)(length(n)), m, y, &o, u, g));
    } else {
        const int32_t *rows = ends(length(n), 2, n);
        const REAL *x = TWIN(array)(3 * length(n)), *gamma = TWIN(array)(length(n));
        DO(TWIN(wfmm_induce_segments)(n, x, n, 2, rows, gamma, TWIN(radii)(length(n)), m, y, &o, u, g));
    }
}

static void TWIN(real_call)(unsigned which) {
    const int64_t n = which == 4 || which == 5 || which == 6 ? count() : 0;
    switch (which) {
    case 0:
    case 1: TWIN(set_segments)(); break;
    case 2: TWIN(set_particles)(); break;
    case 3: TWIN(set_strengths)(); break;
    case 4: {
        const REAL *x = TWIN(array)(3 * length(n));
        DO(TWIN(wfmm_plan_set_charges)(plan, n, x, TWIN(array)(length(n)), memory()));
        break;
    }
    case 5:
    case 6: DO(TWIN(wfmm_plan_set_targets)(plan, n, TWIN(array)(3 * length(n)), memory())); break;
    case 7:
    case 8: TWIN(evaluate)(0); break;
    case 9: TWIN(evaluate)(1); break;
    case 10: TWIN(evaluate)(2); break;
    default: TWIN(induce)();
    }
}
