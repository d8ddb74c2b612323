/* Prints what callers were compiled against: sizes and offsets of the structs, values of the constants that are handed over. */
#include <stddef.h>
#include <stdio.h>
#include <wakefmm.h>
#define SIZE(s) printf("%-45s size   %3zu\n", #s, sizeof(s))
#define AT(s, f) printf("%-45s offset %3zu size %3zu\n", #s "." #f, offsetof(s, f), sizeof(((s *)0)->f))
int main(void) {
    printf("abi version %d\n", WFMM_ABI_VERSION);
    SIZE(wfmm_status);
    SIZE(wfmm_session_options);
    AT(wfmm_session_options, struct_size);
    AT(wfmm_session_options, backend);
    AT(wfmm_session_options, device);
    AT(wfmm_session_options, threads);
    AT(wfmm_session_options, flags);
    SIZE(wfmm_plan_options);
    AT(wfmm_plan_options, struct_size);
    AT(wfmm_plan_options, method);
    AT(wfmm_plan_options, precision);
    AT(wfmm_plan_options, order);
    AT(wfmm_plan_options, leaf_capacity);
    AT(wfmm_plan_options, segment_regularization);
    AT(wfmm_plan_options, particle_regularization);
    AT(wfmm_plan_options, index_base);
    AT(wfmm_plan_options, tolerance);
    AT(wfmm_plan_options, normalization);
    AT(wfmm_plan_options, core_radius);
    AT(wfmm_plan_options, flags);
    AT(wfmm_plan_options, plane_axis);
    AT(wfmm_plan_options, expansion);
    AT(wfmm_plan_options, plane_position);
    AT(wfmm_plan_options, period);
    SIZE(wfmm_communicator);
    AT(wfmm_communicator, struct_size);
    AT(wfmm_communicator, rank);
    AT(wfmm_communicator, size);
    AT(wfmm_communicator, node_rank);
    AT(wfmm_communicator, user);
    AT(wfmm_communicator, allreduce);
    AT(wfmm_communicator, allgather);
    AT(wfmm_communicator, alltoallv);
    AT(wfmm_communicator, barrier);
    SIZE(wfmm_report);
    AT(wfmm_report, struct_size);
    AT(wfmm_report, backend);
    AT(wfmm_report, method);
    AT(wfmm_report, order);
    AT(wfmm_report, depth);
    AT(wfmm_report, precision);
    AT(wfmm_report, cells);
    AT(wfmm_report, far_pairs);
    AT(wfmm_report, near_pairs);
    AT(wfmm_report, host_bytes);
    AT(wfmm_report, device_bytes);
    AT(wfmm_report, estimated_error);
    AT(wfmm_report, seconds);
    AT(wfmm_report, core_pairs);
    AT(wfmm_report, retries);
    SIZE(wfmm_flow_options);
    AT(wfmm_flow_options, struct_size);
    AT(wfmm_flow_options, integrator);
    AT(wfmm_flow_options, stretching);
    AT(wfmm_flow_options, spreading);
    AT(wfmm_flow_options, viscosity);
    AT(wfmm_flow_options, squire);
    AT(wfmm_flow_options, core_limit);
    AT(wfmm_flow_options, split_length);
    AT(wfmm_flow_options, gravity);
    AT(wfmm_flow_options, fluid_density);
    AT(wfmm_flow_options, fluid_viscosity);
    AT(wfmm_flow_options, restitution);
    AT(wfmm_flow_options, friction);
    AT(wfmm_flow_options, reserved);
    AT(wfmm_flow_options, flags);
    SIZE(wfmm_diagnostics);
    AT(wfmm_diagnostics, struct_size);
    AT(wfmm_diagnostics, reason);
    AT(wfmm_diagnostics, time);
    AT(wfmm_diagnostics, total_strength);
    AT(wfmm_diagnostics, linear_impulse);
    AT(wfmm_diagnostics, angular_impulse);
    AT(wfmm_diagnostics, energy);
    AT(wfmm_diagnostics, enstrophy);
    AT(wfmm_diagnostics, divergence);
    AT(wfmm_diagnostics, largest_velocity);
    AT(wfmm_diagnostics, largest_displacement);
    return 0;
}
