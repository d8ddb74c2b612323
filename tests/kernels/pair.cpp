// The kernels' pair functions as ordinary C++, for tests/kernel_arithmetic.rs.
// Enters: one target and one source in the frame. Leaves: velocity and gradient (3 + 9), or potential and gradient (1 + 3).
#include "pair.cuh"

template <class T, int REG, int PART> static void particle(const double* x, const double* p, const double* a, double c, double* out) {
    Particle<T> record = {T(p[0]), T(p[1]), T(p[2]), 0, T(a[0]), T(a[1]), T(a[2]), 0};
    particle_core<T>(REG, T(c), record.core, record.cut2);
    const Vec<T> target = {T(x[0]), T(x[1]), T(x[2])};
    ParticleSum<T, true> slopes = {};
    ParticleSum<T, false> alone = {};
    add_particle<REG, PART, true>(slopes, target, record);
    add_particle<REG, PART, false>(alone, target, record);
    T field[12], velocity[3];
    slopes.field(field);
    alone.field(velocity);
    for (int i = 0; i < 12; i++) out[i] = field[i];
    for (int i = 0; i < 3; i++) out[12 + i] = velocity[i];
}

template <class T, int REG, int PART> static void segment(const double* x, const double* p, double g, double c, double* out) {
    Segment<T> record = {T(p[0]), T(p[1]), T(p[2]), T(g), T(p[3]), T(p[4]), T(p[5]), 0};
    if constexpr (sizeof(T) == 4) record = {T(p[0]), T(p[1]), T(p[2]), T(g), T(p[3] - p[0]), T(p[4] - p[1]), T(p[5] - p[2]), 0};
    const Vec<T> l = along(record);
    record.core = segment_core<T>(REG, T(c), dot(l, l));
    const Vec<T> target = {T(x[0]), T(x[1]), T(x[2])};
    SegmentSum<T, true> slopes = {};
    SegmentSum<T, false> alone = {};
    const SegmentPair<double> exact = SegmentPair<double>::exact({x[0], x[1], x[2]}, {p[0], p[1], p[2], 0, p[3], p[4], p[5], 0});
    if (add_segment<REG, PART, true>(slopes, target, record)) add_segment_exactly<REG>(slopes, exact, record);
    if (add_segment<REG, PART, false>(alone, target, record)) add_segment_exactly<REG>(alone, exact, record);
    for (int i = 0; i < 12; i++) out[i] = slopes.sum[i];
    for (int i = 0; i < 3; i++) out[12 + i] = alone.sum[i];
}

#define PARTICLE_CASE(REG) case REG: return PART_ == 0 ? particle<T, REG, REGULARIZED>(x, p, a, c, out) : particle<T, REG, DEFICIT>(x, p, a, c, out);
template <class T> static void any_particle(int reg, int PART_, const double* x, const double* p, const double* a, double c, double* out) {
    switch (reg) {
        PARTICLE_CASE(NONE) PARTICLE_CASE(GAUSS_ERF) PARTICLE_CASE(EXPONENTIAL) PARTICLE_CASE(COMPACT) PARTICLE_CASE(ROSENHEAD)
        PARTICLE_CASE(WINCKELMANS) PARTICLE_CASE(POLYNOMIAL)
    }
}
#define SEGMENT_CASE(REG) case REG: return PART_ == 0 ? segment<T, REG, REGULARIZED>(x, p, g, c, out) : segment<T, REG, DEFICIT>(x, p, g, c, out);
template <class T> static void any_segment(int reg, int PART_, const double* x, const double* p, double g, double c, double* out) {
    switch (reg) {
        SEGMENT_CASE(NONE) SEGMENT_CASE(RANKINE) SEGMENT_CASE(LAMB_OSEEN) SEGMENT_CASE(VATISTAS) SEGMENT_CASE(SCULLY) SEGMENT_CASE(OFFSET)
    }
}
template <class T> static void any_charge(const double* x, const double* p, double q, double* out) {
    const Charge<T> record = {T(p[0]), T(p[1]), T(p[2]), T(q)};
    ChargeSum<T, true> sum = {};
    add_charge<true>(sum, Vec<T>{T(x[0]), T(x[1]), T(x[2])}, record);
    T field[4];
    sum.field(field);
    for (int i = 0; i < 4; i++) out[i] = field[i];
}

extern "C" void pair_particle(int f64, int reg, int part, const double* x, const double* p, const double* a, double c, double* out) {
    if (f64) any_particle<double>(reg, part, x, p, a, c, out); else any_particle<float>(reg, part, x, p, a, c, out);
}
extern "C" void pair_segment(int f64, int reg, int part, const double* x, const double* p, double g, double c, double* out) {
    if (f64) any_segment<double>(reg, part, x, p, g, c, out); else any_segment<float>(reg, part, x, p, g, c, out);
}
extern "C" void pair_charge(int f64, const double* x, const double* p, double q, double* out) {
    if (f64) any_charge<double>(x, p, q, out); else any_charge<float>(x, p, q, out);
}
