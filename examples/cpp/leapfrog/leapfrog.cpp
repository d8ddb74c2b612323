// Two coaxial vortex rings leapfrog: the rear one shrinks and slips through the front one, and so on. Vortex particles
// with stretching, classical Runge-Kutta; impulse, vorticity and circulation are watched. Writes VTK.
//
//   leapfrog [--steps 400] [--dt 0.02] [--layers 2] [--around 64] [--tolerance 1e-4] [--vtk NAME] [--every 20]
//
// Exit 0 where the constants of the motion held, 1 where they did not, 2 for an error.
#include <wakefmm.hpp>

#include <cstdlib>
#include <cstring>

#include "rings.hpp"

namespace {

struct arguments {
    int steps = 400, layers = 2, around = 64, every = 20;
    double dt = 0.02, tolerance = 1e-4;
    std::string vtk;
};

const char *const usage = "leapfrog [--steps 400] [--layers 2] [--around 64] [--every 20] [--dt 0.02] [--tolerance 1e-4] "
                          "[--vtk PREFIX]";

arguments parse(int argc, char **argv) {
    arguments a;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 == argc) throw std::invalid_argument(name + " has no value, or is unknown\n" + usage);
        const char *value = argv[i + 1];
        if (name == "--steps") a.steps = std::atoi(value);
        else if (name == "--layers") a.layers = std::atoi(value);
        else if (name == "--around") a.around = std::atoi(value);
        else if (name == "--every") a.every = std::atoi(value);
        else if (name == "--dt") a.dt = std::atof(value);
        else if (name == "--tolerance") a.tolerance = std::atof(value);
        else if (name == "--vtk") a.vtk = value;
        else throw std::invalid_argument("unknown argument " + name + "\n" + usage);
    }
    return a;
}

// dx/dt = u, da_j/dt = a_i du_i/dx_j: the transposed form of stretching, which conserves the sum of a pair by pair.
class motion {
public:
    motion(std::size_t n, double tolerance) : plan_(with(tolerance)), velocity(n), stretching(n), gradient_(n) {}

    void operator()(const std::vector<vec> &x, const std::vector<vec> &a, const std::vector<double> &core) {
        plan_.set_particles(x, a, core);
        plan_.set_targets(x);
        plan_.evaluate(velocity, gradient_);
        for (std::size_t k = 0; k < x.size(); ++k)
            for (int j = 0; j < 3; ++j) {
                const auto &g = gradient_[k];
                stretching[k][j] = a[k][0] * g[j] + a[k][1] * g[3 + j] + a[k][2] * g[6 + j];
            }
    }
    std::string recipe() const { return plan_.recipe(); }

private:
    static wakefmm::plan_options with(double tolerance) {
        wakefmm::plan_options o;
        o.tolerance = tolerance;
        return o;
    }
    wakefmm::plan<double> plan_;

public:
    std::vector<vec> velocity, stretching;

private:
    std::vector<std::array<double, 9>> gradient_;
};

// One step of the classical fourth-order method; all arrays were made before.
class stepper {
public:
    stepper(const particles &p, double tolerance)
        : rate_(p.position.size(), tolerance), x_(p.position), a_(p.strength), dx_(x_), da_(x_) {}

    void step(particles &p, double dt) {
        static constexpr double fraction[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
        for (int stage = 0; stage < 4; ++stage) {
            for (std::size_t k = 0; k < x_.size(); ++k) {
                x_[k] = p.position[k], a_[k] = p.strength[k];
                if (stage == 0) continue;
                x_[k] = x_[k] + (fraction[stage] * dt) * rate_.velocity[k];
                a_[k] = a_[k] + (fraction[stage] * dt) * rate_.stretching[k];
            }
            rate_(x_, a_, p.core);
            const double w = weight[stage] * dt / 6;
            for (std::size_t k = 0; k < x_.size(); ++k) {
                dx_[k] = (stage ? dx_[k] : vec{}) + w * rate_.velocity[k];
                da_[k] = (stage ? da_[k] : vec{}) + w * rate_.stretching[k];
            }
        }
        for (std::size_t k = 0; k < x_.size(); ++k) {
            p.position[k] = p.position[k] + dx_[k];
            p.strength[k] = p.strength[k] + da_[k];
        }
    }
    std::string recipe() const { return rate_.recipe(); }

private:
    motion rate_;
    std::vector<vec> x_, a_, dx_, da_;
};

int simulate(const arguments &args) {
    particles p;
    add_ring(p, 0.0, 0.15, args.layers, args.around, 0);
    add_ring(p, 0.7, 0.15, args.layers, args.around, 1);
    stepper stepper(p, args.tolerance);
    const vec start = impulse(p);
    const double gamma = circulation(p, 0) + circulation(p, 1);
    std::printf("%zu particles, impulse %.6f, circulation %.6f\n", p.position.size(), start[2], gamma);
    std::printf("  step    time    z rear  R rear   z front R front  impulse-1  vorticity  circulation-1\n");
    double worst_impulse = 0, worst_vorticity = 0;
    int passages = 0, ahead = 1;
    for (int step = 0; step <= args.steps; ++step) {
        const auto one = position_of(p, 0), two = position_of(p, 1);
        if ((two[0] > one[0] ? 1 : 0) != ahead) ahead = 1 - ahead, ++passages;
        const double di = norm(impulse(p) + (-1.0) * start) / norm(start), dv = norm(vorticity(p));
        worst_impulse = std::fmax(worst_impulse, di), worst_vorticity = std::fmax(worst_vorticity, dv);
        if (step % args.every == 0) {
            const double dc = (circulation(p, 0) + circulation(p, 1)) / gamma - 1;
            std::printf("%6d  %6.2f  %8.4f %7.4f  %8.4f %7.4f  %9.2e  %9.2e  %9.2e\n", step, step * args.dt, one[0],
                        one[1], two[0], two[1], di, dv, dc);
            if (!args.vtk.empty() && !write_vtk(p, args.vtk + "_" + std::to_string(step) + ".vtk"))
                throw std::runtime_error("cannot write " + args.vtk);
        }
        if (step < args.steps) stepper.step(p, args.dt);
    }
    std::printf("%d passages; %s\n", passages, stepper.recipe().c_str());
    // The impulse is held by the time step and the resolution, the vorticity by the tolerance of the sums.
    const bool held = worst_impulse < 1e-2 && worst_vorticity < 20 * args.tolerance * gamma;
    std::printf("largest change of the impulse %.1e, largest sum of strengths %.1e: %s\n", worst_impulse,
                worst_vorticity, held ? "held" : "NOT HELD");
    return held ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return simulate(parse(argc, argv));
    } catch (const wakefmm::error &e) {
        std::fprintf(stderr, "%s: %s\n", wfmm_status_name(e.status()), e.what());
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
    }
    return 2;
}
