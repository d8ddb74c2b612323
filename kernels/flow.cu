// Steps of a flow whose state lies in device memory: sums of vectors, dust, cores, stretching, and what the host asks at a step's
// end. All in double precision; the formulas are those of src/flow (dust.rs, filaments.rs, step.rs), which say where they are from.
// Vectors hold every integrated quantity one after the other (src/backend/cuda/motion.rs). Any block unless said; one thread a
// row, or sweeps of the grid where numbers are summed up.
#include "args.cuh"
#include "common.cuh"

constexpr int kSweep = 256;

WFMM_DEVICE long long thread() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
WFMM_DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }
WFMM_DEVICE bool is_finite(double x) { return x * 0.0 == 0.0; }
WFMM_DEVICE Vec<double> row(const double* x, long long k) { return {x[3 * k], x[3 * k + 1], x[3 * k + 2]}; }
WFMM_DEVICE double norm(Vec<double> a) { return sqrt(dot(a, a)); }

// The largest of a block's values to `to`. Block kSweep, all of its threads.
WFMM_DEVICE void largest(double value, unsigned long long* to) {
    __shared__ double s_value[kSweep];
    s_value[threadIdx.x] = value;
    __syncthreads();
    for (int half = kSweep / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s_value[threadIdx.x] = fmax(s_value[threadIdx.x], s_value[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0 && s_value[0] > 0) atomicMax(to, (unsigned long long)__double_as_longlong(s_value[0]));
    __syncthreads();
}

// y = a y + b x.
WFMM_KERNEL flow_combine(double* y, double a, double b, const double* x, long long n) {
    for (long long k = thread(); k < n; k += threads()) y[k] = a * y[k] + b * x[k];
}

// sum = y + b x.
WFMM_KERNEL flow_plus(double* sum, const double* y, double b, const double* x, long long n) {
    for (long long k = thread(); k < n; k += threads()) sum[k] = y[k] + b * x[k];
}

// sum = y + a f + b g.
WFMM_KERNEL flow_plus_both(double* sum, const double* y, double a, const double* f, double b, const double* g, long long n) {
    for (long long k = thread(); k < n; k += threads()) sum[k] = y[k] + a * f[k] + b * g[k];
}

// y = x where y is no number.
WFMM_KERNEL flow_fill_gaps(double* y, const double* x, long long n) {
    for (long long k = thread(); k < n; k += threads())
        if (!(y[k] == y[k])) y[k] = x[k];
}

WFMM_KERNEL flow_fill(double* y, double value, long long n) {
    for (long long k = thread(); k < n; k += threads()) y[k] = value;
}

// Whether some of n numbers are none, or infinite, and the first such. Block kSweep.
WFMM_KERNEL flow_look(const double* y, long long n, StepBits* found) {
    bool gap = false, infinite = false;
    for (long long k = thread(); k < n; k += threads()) {
        if (is_finite(y[k])) continue;
        gap |= !(y[k] == y[k]);
        if (!infinite) atomicMax(&found->first, ~(unsigned long long)k);
        infinite = true;
    }
    const int any_gap = __syncthreads_or(gap), any_infinite = __syncthreads_or(infinite);
    if (threadIdx.x == 0 && any_gap) atomicOr(&found->gaps, 1ull);
    if (threadIdx.x == 0 && any_infinite) atomicOr(&found->infinite, 1ull);
}

// The longest way of n points. Block kSweep.
WFMM_KERNEL flow_displacement(const double* before, const double* after, long long n, StepBits* found) {
    double most = 0;
    for (long long k = thread(); k < n; k += threads()) most = fmax(most, norm(row(after, k) - row(before, k)));
    largest(most, &found->displacement);
}

// Adds a velocity at n points.
WFMM_KERNEL flow_add_stream(double* u, double x, double y, double z, long long n) {
    const long long k = thread();
    if (k >= n) return;
    u[3 * k] += x;
    u[3 * k + 1] += y;
    u[3 * k + 2] += z;
}

// Core radii of n particles from their squares.
WFMM_KERNEL flow_particle_cores(const double* square, double* core, long long n) {
    const long long k = thread();
    if (k < n) core[k] = sqrt(fmax(square[k], 0.0));
}

// da/dt of n particles: (classical J + transpose J^T) a, g[k][i][j] = du_i/dx_j.
WFMM_KERNEL flow_stretching(double classical, double transpose, const double* strength, const double* g, double* rate, long long n) {
    const long long k = thread();
    if (k >= n) return;
    const double* j = g + 9 * k;
    const double a[3] = {strength[3 * k], strength[3 * k + 1], strength[3 * k + 2]};
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int c = 0; c < 3; c++) sum += (classical * j[3 * i + c] + transpose * j[3 * c + i]) * a[c];
        rate[3 * k + i] = sum;
    }
}

WFMM_DEVICE double length_of(const int* ends, const double* points, long long k) { return norm(row(points, ends[2 * k + 1]) - row(points, ends[2 * k])); }

// q = c^2 l of n segments.
WFMM_KERNEL flow_volumes(const int* ends, const double* core, const double* points, double* volume, long long n) {
    const long long k = thread();
    if (k < n) volume[k] = core[k] * core[k] * length_of(ends, points, k);
}

// dq/dt of n segments: four times Lamb's factor, `lamb`, times (viscosity + squire |circulation|) l.
WFMM_KERNEL flow_growth(const int* ends, const double* circulation, const double* points, double lamb, double viscosity, double squire, double* rate, long long n) {
    const long long k = thread();
    if (k >= n) return;
    const double growth = 4.0 * lamb * (viscosity + squire * fabs(circulation[k]));
    rate[k] = growth == 0 ? 0.0 : growth * length_of(ends, points, k);
}

// Core radii of n segments at a stage of a step that began at points0 with volumes q0. What neither grew nor was strained keeps its
// bits, a segment without length its core; one that had none but rounding at points0 has no strain in this step. With `found` the longest of these
// segments too. Block kSweep.
WFMM_KERNEL flow_cores(const int* ends, const double* core, const double* points0, const double* q0, const double* points, const double* q, double* out, long long n,
                       StepBits* found) {
    const long long k = thread();
    double l = 0;
    if (k < n) {
        const double l0 = length_of(ends, points0, k);
        l = length_of(ends, points, k);
        out[k] = (l == l0 && q[k] == q0[k]) || l == 0 ? core[k] : sqrt(l0 > 1e-9 * l ? q[k] / l : core[k] * core[k] + (q[k] - q0[k]) / l);
    }
    if (found) largest(l, &found->length);
}

struct Parcel {
    Vec<double> position, velocity;
    double diameter, density;
};

WFMM_DEVICE double& at(Vec<double>& a, int i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; }

// Drag relative to Stokes' by Schiller and Naumann; constant coefficient above.
WFMM_DEVICE double drag_factor(double re) { return re < 1000.0 ? 1.0 + 0.15 * pow(re, 0.687) : 0.44 / 24.0 * re; }

WFMM_DEVICE double lift(const Medium& m, const Parcel& p) { return 1.0 - m.density / p.density; }

WFMM_DEVICE bool rests(const Medium& m, Parcel p) {
    return m.axis >= 0 && at(p.position, (int)m.axis) == m.ground && p.velocity.x == 0 && p.velocity.y == 0 && p.velocity.z == 0;
}

// phi1 = (1 - exp(-z))/z and phi2 = (z - 1 + exp(-z))/z^2 in `force`, z times them in `drag`.
struct Shares {
    double drag[2], force[2];
};

WFMM_DEVICE Shares shares(double z) {
    if (z < 0.1) {
        double sum = 1;
        for (int k = 11; k >= 3; k--) sum = 1.0 - z / k * sum;
        const double phi2 = 0.5 * sum, phi1 = 1.0 - z * phi2;
        return {{z * phi1, z * phi2}, {phi1, phi2}};
    }
    const double lost = -expm1(-z), phi1 = lost / z;
    return {{lost, 1.0 - phi1}, {phi1, (1.0 - phi1) / z}};
}

// The solution after h for constant wind and drag factor.
WFMM_DEVICE Parcel exact(const Medium& m, Parcel p, Vec<double> wind, double h, double factor) {
    const double tau = p.density * p.diameter * p.diameter / (18.0 * m.viscosity * factor), up = lift(m, p);
    const Shares s = shares(h / tau);
    for (int i = 0; i < 3; i++) {
        const double v = at(p.velocity, i), slip = at(wind, i) - v, gain = h * up * m.gravity[i];
        at(p.velocity, i) = v + slip * s.drag[0] + gain * s.force[0];
        at(p.position, i) += h * (v + slip * s.drag[1] + gain * s.force[1]);
    }
    return p;
}

// After h in fluid of velocity `wind`; parts of the step are shorter while the drag factor changes by more than a tenth.
WFMM_DEVICE Parcel advance(const Medium& m, Parcel p, Vec<double> wind, double h) {
    const double by_slip = m.density * p.diameter / m.viscosity;
    double left = h, part = h;
    while (true) {
        const double first = drag_factor(by_slip * norm(wind - p.velocity));
        const double middle = drag_factor(by_slip * norm(wind - exact(m, p, wind, 0.5 * part, first).velocity));
        if (fabs(middle - first) > 0.1 * fmin(middle, first) && part > h * 0x1p-30) {
            part *= 0.5;
            continue;
        }
        p = exact(m, p, wind, part, middle);
        if (part >= left) return p;
        left -= part;
        part = fmin(left, 2.0 * part);
    }
}

// Contact with the ground at the end of a step of dt.
WFMM_DEVICE Parcel land(const Medium& m, Parcel p, double dt) {
    if (m.axis < 0) return p;
    const int axis = (int)m.axis;
    const double above = at(p.position, axis) - m.ground;
    if (rests(m, p) || above > 0 || (above == 0 && at(p.velocity, axis) >= 0)) return p;
    const double up = lift(m, p), rest = norm({m.gravity[0], m.gravity[1], m.gravity[2]}) * fabs(up) * dt;
    const double speed = -at(p.velocity, axis), pull = -up * m.gravity[axis];
    for (int i = 0; i < 3; i++) at(p.velocity, i) *= 1.0 - m.friction;
    double back = -speed, below = 0;
    if (speed > 0) {
        const double met = sqrt(fmax(speed * speed + 2.0 * pull * above, 0.0));
        below = fmin(-2.0 * above / (speed + met), dt);
        back = m.restitution * met;
    }
    const bool leaves = !(back <= rest);
    at(p.position, axis) = m.ground + (leaves ? below * (back - 0.5 * pull * below) : 0.0);
    at(p.velocity, axis) = leaves ? back - pull * below : 0.0;
    if (!leaves && norm(p.velocity) <= rest) p.velocity = {0, 0, 0};
    return p;
}

// n parcels after a time h of a step in which the fluid around each moved by `drift`; their positions alone, or with `new_velocity` as
// they are at the end of the step, after contact with the ground, and what of that is not finite and the longest way. Block kSweep.
WFMM_KERNEL flow_dust(const double* position, const double* velocity, const double* diameter, const double* density, const double* drift, double h,
                      const __grid_constant__ Medium medium, double* new_position, double* new_velocity, long long n, StepBits* found) {
    const long long k = thread();
    double way = 0;
    bool infinite = false;
    if (k < n) {
        Parcel p = {row(position, k), row(velocity, k), diameter[k], density[k]};
        const Vec<double> old = p.position;
        if (h != 0 && !rests(medium, p)) {
            const Vec<double> wind = {drift[3 * k] / h, drift[3 * k + 1] / h, drift[3 * k + 2] / h};
            p = advance(medium, p, wind, h);
        }
        if (new_velocity) {
            p = land(medium, p, h);
            new_velocity[3 * k] = p.velocity.x;
            new_velocity[3 * k + 1] = p.velocity.y;
            new_velocity[3 * k + 2] = p.velocity.z;
            way = norm(p.position - old);
            infinite = !is_finite(norm(p.position)) || !is_finite(norm(p.velocity));
        }
        new_position[3 * k] = p.position.x;
        new_position[3 * k + 1] = p.position.y;
        new_position[3 * k + 2] = p.position.z;
    }
    if (!new_velocity) return;
    const int any = __syncthreads_or(infinite);
    if (threadIdx.x == 0 && any) atomicOr(&found->infinite, 1ull);
    largest(way, &found->displacement);
}
