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
    return 0;
}
