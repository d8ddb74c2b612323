// A helical wake over many processes: each has a part of the segments and gets the velocity at its own nodes. The wake is
// convected a few steps with the velocities found.
//
//   mpirun -n 4 wake [segments of each process] [steps]
//
// Exit 0 where the error over all nodes was within the tolerance at every step, 1 where it was not, 2 for an error.
// The C++ bindings that MPI no longer has stay out of mpi.h.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <wakefmm.hpp>
#include <wakefmm_mpi.h>

namespace {

using vec = std::array<double, 3>;

int run(long segments, int steps, int rank, int ranks) {
    // Process r has turns r, r + ranks, …: the library finds a partition of its own.
    std::vector<vec> nodes;
    std::vector<std::array<std::int32_t, 2>> ends;
    std::vector<double> circulation, core;
    for (long k = 0; k <= segments; ++k) {
        const double age = 0.02 * static_cast<double>(k * ranks + rank);
        nodes.push_back({std::cos(age), std::sin(age), 0.01 * age});
        if (k == segments) break;
        ends.push_back({static_cast<std::int32_t>(k), static_cast<std::int32_t>(k + 1)});
        circulation.push_back(1.0);
        core.push_back(0.02 * std::sqrt(1.0 + age));
    }

    wfmm_session *made = nullptr;
    wakefmm::check(wfmm_mpi_session_create(MPI_COMM_WORLD, nullptr, &made));
    const wakefmm::session session(made);
    wakefmm::plan_options options;
    options.tolerance = 1e-3;
    wakefmm::plan<double> plan(session, options);
    std::vector<vec> velocity(nodes.size());
    double worst = 0;
    for (int step = 0; step < steps; ++step) {
        plan.set_segments(nodes, ends, circulation, core);
        plan.set_targets(nodes);
        plan.evaluate(velocity);
        const double error = plan.error_of(200); // over the nodes of all processes, the same on each
        worst = std::fmax(worst, error);
        if (rank == 0) std::printf("step %d: error %.1e\n", step, error);
        for (std::size_t k = 0; k < nodes.size(); ++k)
            for (int i = 0; i < 3; ++i) nodes[k][i] += 1e-3 * velocity[k][i];
    }
    if (rank == 0) std::printf("%s\n", plan.recipe().c_str());
    return worst <= options.tolerance ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    int level = 0, rank = 0, ranks = 1, code = 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        code = run(argc > 1 ? std::atol(argv[1]) : 5000, argc > 2 ? std::atoi(argv[2]) : 3, rank, ranks);
    } catch (const std::exception &e) {
        // An error of the library is the same on all processes.
        std::fprintf(stderr, "process %d: %s\n", rank, e.what());
    }
    MPI_Finalize();
    return code;
}
