/* libwakefmm: Biot-Savart sums of vortex wakes by a fast multipole method. Arrays, ownership and errors: at each function.

   The sums. x: target; s: normalization, default 1/(4 pi); c: core radius; S and F: at WFMM_REG_*; right-hand rule.
     Particles at X with strength a, r = |x-X|:
       u = s sum S(r) cross(a, x-X)
     Segments P1 -> P2 with circulation G, r1 = x-P1, r2 = x-P2, C = cross(r1, r2), D = |r1||r2| (|r1||r2| + dot(r1, r2)),
     rho = |C|/|P2-P1| the distance to the line:
       u = s sum G F (|r1|+|r2|)/D C
     Charges q at X:
       phi = s sum q/|x-X|, its gradient d phi/dx_j (minus the field of a charge)
   r = 0, C = 0 and P1 = P2 contribute zero, to gradients too. Units are the caller's.

   Link with -lwakefmm. Generated from the Rust sources by `make generate`; do not edit. */

#ifndef WAKEFMM_H
#define WAKEFMM_H

#include <stddef.h>
#include <stdint.h>

/**
 * What a function of the C API returns. 1..=99: the caller's error, nothing changed; 100..=199: a resource is missing,
 * may be retried; negative: the object is unusable, only destroy is allowed. Numbers are never reused.
 * 
 * Success.
 */
#define WFMM_OK 0

/**
 * A pointer is NULL where an array or an output is needed.
 */
#define WFMM_ERR_NULL 1

/**
 * A handle that is not, or no longer, a live session or plan.
 */
#define WFMM_ERR_HANDLE 2

/**
 * A count or size that is negative, too large or not the expected one.
 */
#define WFMM_ERR_COUNT 3

/**
 * A number that is no constant of this enumeration, or a flag that does not exist.
 */
#define WFMM_ERR_CONSTANT 4

/**
 * A number outside of its range.
 */
#define WFMM_ERR_VALUE 5

/**
 * NaN or infinity.
 */
#define WFMM_ERR_NOT_FINITE 6

/**
 * A point number outside index_base .. index_base+n_points-1.
 */
#define WFMM_ERR_INDEX 7

/**
 * Called too early: sources or targets have not been set.
 */
#define WFMM_ERR_STATE 8

/**
 * Another thread is using this plan.
 */
#define WFMM_ERR_BUSY 9

/**
 * An option struct is newer than this library and uses what it does not know.
 */
#define WFMM_ERR_TOO_NEW 10

/**
 * struct_size is not that of an initialized struct.
 */
#define WFMM_ERR_STRUCT_SIZE 11

/**
 * A tolerance below what the computing precision can give.
 */
#define WFMM_ERR_TOLERANCE 12

/**
 * Output arrays overlap.
 */
#define WFMM_ERR_OVERLAP 13

/**
 * Arrays are not where memory says, or are where this session cannot reach them.
 */
#define WFMM_ERR_MEMORY 14

/**
 * An array of Fortran or C++ is smaller than the count it goes with.
 */
#define WFMM_ERR_SHAPE 15

/**
 * There is a driver, but no usable GPU, or none of the number asked for.
 */
#define WFMM_ERR_NO_DEVICE 100

/**
 * Out of host memory.
 */
#define WFMM_ERR_HOST_MEMORY 101

/**
 * Out of device memory.
 */
#define WFMM_ERR_DEVICE_MEMORY 102

/**
 * Threads could not be started.
 */
#define WFMM_ERR_THREADS 103

/**
 * The driver is missing, too old, or refused.
 */
#define WFMM_ERR_DRIVER 104

/**
 * Not built (WFMM_METHOD_TREECODE).
 */
#define WFMM_ERR_UNSUPPORTED 105

/**
 * An internal error was stopped at the boundary.
 */
#define WFMM_ERR_INTERNAL -1

/**
 * An earlier failure left the object unusable.
 */
#define WFMM_ERR_UNUSABLE -2

/**
 * The device was lost; after a fault in a kernel this process cannot use that GPU any more.
 */
#define WFMM_ERR_DEVICE_LOST -3

/**
 * The object was made before fork(); the child must make its own.
 */
#define WFMM_ERR_FORKED -4

/**
 * Host memory ran out inside a computation; the plan is unusable, the next one may find more.
 */
#define WFMM_ERR_OUT_OF_MEMORY -5

/**
 * How a core regularizes its element: _RANKINE to _OFFSET for segments, _GAUSS_ERF to _POLYNOMIAL for particles,
 * _NONE for both. A radius of 0 means the singular kernel for that element.
 * 
 * Singular kernel. Segments: F = 1. Particles: S = 1/r^3.
 */
#define WFMM_REG_NONE 0

/**
 * Segments: F = min(1, rho^2/c^2).
 */
#define WFMM_REG_RANKINE 1

/**
 * Segments: F = 1 - exp(-1.25643 rho^2/c^2).
 */
#define WFMM_REG_LAMB_OSEEN 2

/**
 * Segments: F = rho^2/sqrt(c^4 + rho^4), n = 2; the default of segments.
 */
#define WFMM_REG_VATISTAS 3

/**
 * Segments: F = rho^2/(c^2 + rho^2), n = 1.
 */
#define WFMM_REG_SCULLY 4

/**
 * Segments: F = 1 and the denominator D grows by c^2 |P2-P1|^2.
 */
#define WFMM_REG_OFFSET 5

/**
 * Particles: S = (erf(q/sqrt 2) - sqrt(2/pi) q exp(-q^2/2))/r^3, q = r/c; the default of particles.
 */
#define WFMM_REG_GAUSS_ERF 6

/**
 * Particles: S = (1 - exp(-r^3/c^3))/r^3.
 */
#define WFMM_REG_EXPONENTIAL 7

/**
 * Particles: S = 1/sqrt(r^6 + c^6).
 */
#define WFMM_REG_COMPACT 8

/**
 * Particles: S = (r^2 + c^2)^(-3/2).
 */
#define WFMM_REG_ROSENHEAD 9

/**
 * Particles: S = (r^2 + 5/2 c^2)(r^2 + c^2)^(-5/2).
 */
#define WFMM_REG_WINCKELMANS 10

/**
 * Particles: S = K/r^3, K = (r/c)^2 for r <= c, else 1.
 */
#define WFMM_REG_POLYNOMIAL 11

/**
 * How the sums are computed.
 * 
 * Direct or fast multipole, whichever the cost model expects to be faster.
 */
#define WFMM_METHOD_AUTO 0

/**
 * Every pair.
 */
#define WFMM_METHOD_DIRECT 1

/**
 * The fast multipole method. A GPU sums directly what has no FMM there: WFMM_REG_OFFSET, and tolerances that its
 * orders do not reach; method of the report tells.
 */
#define WFMM_METHOD_FMM 2

/**
 * Reserved: multipoles at the targets, no local expansions. Not built: prepare, evaluate and check return
 * WFMM_ERR_UNSUPPORTED.
 */
#define WFMM_METHOD_TREECODE 3

/**
 * Precision of the computation.
 * 
 * That of the arrays: double as soon as one array that was handed over is double, else single.
 */
#define WFMM_PRECISION_ARRAYS 0

/**
 * Single. Where it does not do, for a point far away or cores far above the box, double takes over: one warning and
 * precision of the report say so.
 */
#define WFMM_PRECISION_F32 1

/**
 * Double.
 */
#define WFMM_PRECISION_F64 2

/**
 * Where the sums are computed.
 * 
 * A CUDA device where there is one and the problem is worth the transfer, else the CPU.
 */
#define WFMM_BACKEND_AUTO 0

/**
 * The CPU.
 */
#define WFMM_BACKEND_CPU 1

/**
 * A CUDA device; an error where there is none.
 */
#define WFMM_BACKEND_CUDA 2

/**
 * Where the arrays of a call are.
 * 
 * Host memory: inputs are copied.
 */
#define WFMM_MEMORY_HOST 0

/**
 * Device memory: inputs are borrowed until the next set_* or destroy.
 */
#define WFMM_MEMORY_DEVICE 1

/**
 * The driver is asked; without a device: host.
 */
#define WFMM_MEMORY_AUTO 2

/**
 * How much is logged.
 * 
 * Nothing.
 */
#define WFMM_LOG_OFF 0

/**
 * Failures.
 */
#define WFMM_LOG_ERROR 1

/**
 * And what was not done as asked.
 */
#define WFMM_LOG_WARN 2

/**
 * And one line per plan: recipe and seconds per pass.
 */
#define WFMM_LOG_INFO 3

/**
 * And details.
 */
#define WFMM_LOG_DEBUG 4

/**
 * flags of a plan: results are added to the output arrays instead of overwriting them.
 */
#define WFMM_FLAG_ACCUMULATE 1

/**
 * The smallest tolerance that single precision is promised to hold.
 */
#define WFMM_TOLERANCE_MIN_F32 5e-6

/**
 * The smallest tolerance that double precision is promised to hold.
 */
#define WFMM_TOLERANCE_MIN_F64 5e-12

/**
 * The highest order of expansions that may be asked for.
 */
#define WFMM_ORDER_MAX 40

/**
 * The passes, in the order of the data; seconds of a report are indexed by them.
 * 
 * Copies between host and device.
 */
#define WFMM_PASS_TRANSFER 0

/**
 * Keys, sorting, cells.
 */
#define WFMM_PASS_TREE 1

/**
 * Near, far and core lists.
 */
#define WFMM_PASS_LISTS 2

/**
 * Sources to multipoles.
 */
#define WFMM_PASS_P2M 3

/**
 * Multipoles of children to those of parents.
 */
#define WFMM_PASS_M2M 4

/**
 * Multipoles to local expansions.
 */
#define WFMM_PASS_M2L 5

/**
 * Local expansions of parents to those of children.
 */
#define WFMM_PASS_L2L 6

/**
 * Local expansions to targets.
 */
#define WFMM_PASS_L2P 7

/**
 * Near pairs and core corrections, element by element; all pairs where the method is direct.
 */
#define WFMM_PASS_P2P 8

/**
 * The whole call.
 */
#define WFMM_PASS_TOTAL 9

/**
 * Reserved, 0: far pairs where a core still matters are in P2P.
 */
#define WFMM_PASS_CORE 10

/**
 * Reserved, 0: multipoles to targets.
 */
#define WFMM_PASS_M2P 11

/**
 * Reserved, 0: sources to local expansions.
 */
#define WFMM_PASS_P2L 12

/**
 * Length of seconds in a report; places without a WFMM_PASS_* name are 0.
 */
#define WFMM_PASS_COUNT 16

/**
 * Version of the binary interface; grows when a caller must be compiled again.
 */
#define WFMM_ABI_VERSION 1

/**
 * Sources, targets, tree and results of one sum. One thread at a time; a second caller gets WFMM_ERR_BUSY.
 */
typedef struct wfmm_plan wfmm_plan;

/**
 * Back end, device and threads. Any thread may use it.
 */
typedef struct wfmm_session wfmm_session;

/**
 * Result of a call: 0 ok; 1..99 the caller's error, nothing changed; 100..199 a resource is missing, may be
 * retried; negative: the object is unusable, only destroy is allowed. See WFMM_ERR_*.
 */
typedef int32_t wfmm_status;

/**
 * Receives log lines: a WFMM_LOG_* level, a message that is valid during the call, and `user`.
 * May be called from any thread; must not call wfmm_log_set.
 */
typedef void (*wfmm_log_fn)(int32_t level, const char *message, void *user);

/**
 * Options of a session. Fill with wfmm_session_options_init and change what is wanted.
 */
typedef struct wfmm_session_options {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_BACKEND_*; default AUTO.
     */
    int32_t backend;
    /**
     * Number of the device; -1, the default, is the best one.
     */
    int32_t device;
    /**
     * Number of host threads; 0, the default, is all that the process may use.
     */
    int32_t threads;
    /**
     * No flag is defined yet: 0.
     */
    uint64_t flags;
} wfmm_session_options;

/**
 * Options of a plan. Fill with wfmm_plan_options_init and change what is wanted.
 */
typedef struct wfmm_plan_options {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_METHOD_*; default AUTO.
     */
    int32_t method;
    /**
     * WFMM_PRECISION_* of the computation; default ARRAYS.
     */
    int32_t precision;
    /**
     * Order of the expansions, at most WFMM_ORDER_MAX; 0, the default, derives it from the tolerance. On the CPU it is
     * exact: pairs that it does not serve are summed directly, more of them where the field misses the tolerance.
     * On a GPU it is the least order, cut to 16 (double) or 11 (single).
     */
    int32_t order;
    /**
     * Most elements in a leaf of the tree; 0, the default, lets the library choose. On a GPU 8 at least, 512 at most.
     */
    int32_t leaf_capacity;
    /**
     * WFMM_REG_* of segments; default VATISTAS.
     */
    int32_t segment_regularization;
    /**
     * WFMM_REG_* of particles; default GAUSS_ERF.
     */
    int32_t particle_regularization;
    /**
     * Number of the first point in connectivities, 0 or 1; default 0 in C, 1 in Fortran.
     */
    int32_t index_base;
    /**
     * Relative L2 error of the velocity (or potential) over the targets against the exact, regularized sum; default 1e-4.
     * Gradients are held to 30 tolerances, relative to their own norm. More than 0.1 counts as 0.1.
     */
    double tolerance;
    /**
     * Factor of all sums; default 1/(4 pi); 1 gives the papers' sums.
     */
    double normalization;
    /**
     * Core radius where no array of radii is given, length units of the positions; default 0.
     */
    double core_radius;
    /**
     * WFMM_FLAG_*, or-ed; default 0.
     */
    uint64_t flags;
} wfmm_plan_options;

/**
 * What the last evaluation of a plan did. Set struct_size to sizeof before the call.
 */
typedef struct wfmm_report {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_BACKEND_* that was used.
     */
    int32_t backend;
    /**
     * WFMM_METHOD_* that was used.
     */
    int32_t method;
    /**
     * Highest order of the expansions; 0 for a direct sum.
     */
    int32_t order;
    /**
     * Levels of the tree below its root.
     */
    int32_t depth;
    /**
     * WFMM_PRECISION_* of the computation.
     */
    int32_t precision;
    /**
     * Cells of the source and target trees.
     */
    int64_t cells;
    /**
     * Cell pairs of the far field; 0 on a GPU.
     */
    int64_t far_pairs;
    /**
     * Element pairs that were summed one by one, those of the core correction included.
     */
    int64_t near_pairs;
    /**
     * Host memory of the plan in bytes.
     */
    uint64_t host_bytes;
    /**
     * Device memory of the plan in bytes.
     */
    uint64_t device_bytes;
    /**
     * Relative L2 error of the fast multipole method, found on a sample of targets; 0 after a direct sum.
     */
    double estimated_error;
    /**
     * Wall-clock seconds of each pass, indexed by WFMM_PASS_*. A pass that was not repeated
     * has 0 on the CPU. Small evaluations on a GPU would be slowed by clocks: of those one in sixteen
     * is timed pass by pass, and the others share out their whole time as that one did.
     */
    double seconds[WFMM_PASS_COUNT];
    /**
     * Element pairs of the core correction, far pairs where a core still matters; 0 on a GPU, which counts them with
     * near_pairs only.
     */
    int64_t core_pairs;
    /**
     * Times that the field missed its tolerance on the sample and was computed again: with higher orders, in double precision or
     * directly. 0 on the CPU.
     */
    int64_t retries;
} wfmm_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Version of the binary interface of the loaded library; compare with WFMM_ABI_VERSION of the header.
 * Thread rule: any thread. Example: if (wfmm_abi_version() != WFMM_ABI_VERSION) return 1;
 */
uint32_t wfmm_abi_version(void);

/**
 * Name of a status, "WFMM_ERR_NULL" for example; never NULL, the library's own, do not free.
 * Thread rule: any thread. Example: puts(wfmm_status_name(status));
 */
const char *wfmm_status_name(wfmm_status status);

/**
 * Version of the library.
 * Each output may be NULL. Thread rule: any thread. Errors: none.
 * Example: int32_t major, minor, patch; wfmm_version(&major, &minor, &patch);
 */
wfmm_status wfmm_version(int32_t *major, int32_t *minor, int32_t *patch);

/**
 * Copies the calling thread's last message: which argument, its value, and what would be accepted.
 * buf gets at most capacity bytes with the closing NUL (NULL where capacity is 0); out_length, which may be
 * NULL, gets the full length without the NUL. A success does not erase the message.
 * Thread rule: any thread, each has its own message. Errors: WFMM_ERR_NULL.
 * Example: char m[512]; wfmm_last_error(m, sizeof m, NULL); fputs(m, stderr);
 */
wfmm_status wfmm_last_error(char *buf, size_t capacity, size_t *out_length);

/**
 * Leaves a message of the caller's own, cut after 2048 bytes, as the thread's last message; for bindings of other languages, which check
 * array shapes before the library sees them. message holds length bytes.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_COUNT.
 * Example: wfmm_last_error_set("velocity is too short", 21);
 */
wfmm_status wfmm_last_error_set(const char *message,
                                size_t length);

/**
 * Sets how much is logged (WFMM_LOG_*) and where: to a callback, or to standard error without one.
 * callback may be NULL; user is handed back to it. When the call returns, an earlier callback is called no more.
 * At the start the level is that of the environment variable WAKEFMM_LOG (off, error, warn, info, debug), else off.
 * Thread rule: any thread, but not from inside a callback. Errors: WFMM_ERR_CONSTANT.
 * Example: wfmm_log_set(WFMM_LOG_INFO, NULL, NULL);
 */
wfmm_status wfmm_log_set(int32_t level, wfmm_log_fn callback, void *user);

/**
 * Fills options with the defaults. size is sizeof *options.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
 * Example: wfmm_session_options o; wfmm_session_options_init(&o, sizeof o); o.threads = 2;
 */
wfmm_status wfmm_session_options_init(struct wfmm_session_options *options, size_t size);

/**
 * Makes a session. options may be NULL: defaults. The caller owns *out and ends it with wfmm_session_destroy;
 * plans keep a destroyed session alive until they end.
 * Thread rule: any thread; the session may be shared by all. After fork() the child must make its own.
 * Errors: WFMM_ERR_NULL, _CONSTANT, _VALUE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS, _HOST_MEMORY; for CUDA
 * WFMM_ERR_DRIVER: no driver or too old, WFMM_ERR_NO_DEVICE: no usable GPU, or no such number, _DEVICE_MEMORY.
 * Example: wfmm_session *s = NULL; if (wfmm_session_create(NULL, &s)) return 1;
 */
wfmm_status wfmm_session_create(const struct wfmm_session_options *options, struct wfmm_session **out);

/**
 * Says in one line what the session computes on. Buffer rules as in wfmm_last_error.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_HANDLE.
 * Example: char line[256]; wfmm_session_describe(s, line, sizeof line, NULL);
 */
wfmm_status wfmm_session_describe(const struct wfmm_session *session, char *buf, size_t capacity, size_t *out_length);

/**
 * Ends a session; plans that use it go on. *session becomes NULL; a NULL session is fine.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE.
 * Example: wfmm_session_destroy(&s);
 */
wfmm_status wfmm_session_destroy(struct wfmm_session **session);

/**
 * Fills options with the defaults. size is sizeof *options.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
 * Example: wfmm_plan_options o; wfmm_plan_options_init(&o, sizeof o); o.tolerance = 1e-6;
 */
wfmm_status wfmm_plan_options_init(struct wfmm_plan_options *options, size_t size);

/**
 * Makes a plan without sources and targets. session may be NULL: a default session, shared by all such plans;
 * options may be NULL: defaults. The caller owns *out and ends it with wfmm_plan_destroy.
 * Thread rule: any thread; the plan itself serves one thread at a time.
 * Errors: WFMM_ERR_NULL, _HANDLE, _CONSTANT, _VALUE, _NOT_FINITE, _TOLERANCE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS,
 * _HOST_MEMORY; WFMM_ERR_FORKED where the session was made before fork().
 * Example: wfmm_plan *p = NULL; if (wfmm_plan_create(NULL, NULL, &p)) return 1;
 */
wfmm_status wfmm_plan_create(struct wfmm_session *session,
                             const struct wfmm_plan_options *options,
                             struct wfmm_plan **out);

/**
 * Does ahead of the first evaluation what needs no output: on the CPU trees, lists and orders, on a GPU the copy of the
 * arrays. Optional: wfmm_plan_evaluate_* does it too.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _TOLERANCE; 100..199 where the device or its memory is missing; WFMM_ERR_OUT_OF_MEMORY where host memory ran
 * out.
 * Example: wfmm_plan_prepare(p);
 */
wfmm_status wfmm_plan_prepare(struct wfmm_plan *plan);

/**
 * Numbers of elements that the plan holds. Each output may be NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: int64_t m; wfmm_plan_counts(p, NULL, NULL, NULL, &m);
 */
wfmm_status wfmm_plan_counts(const struct wfmm_plan *plan,
                             int64_t *n_segments,
                             int64_t *n_particles,
                             int64_t *n_charges,
                             int64_t *n_targets);

/**
 * Memory that the plan holds at the moment, in bytes: its copies of the arrays, tree, lists, expansions.
 * Each output may be NULL. Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: uint64_t host, device; wfmm_plan_workspace(p, &host, &device);
 */
wfmm_status wfmm_plan_workspace(const struct wfmm_plan *plan, uint64_t *host_bytes, uint64_t *device_bytes);

/**
 * Says in a paragraph what was chosen (method, order, leaf size, precision) and why. On the CPU from wfmm_plan_prepare
 * on, on a GPU from the first evaluation on; before, it says that nothing was chosen. Buffer rules as in
 * wfmm_last_error.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: char why[1024]; wfmm_plan_recipe(p, why, sizeof why, NULL); puts(why);
 */
wfmm_status wfmm_plan_recipe(const struct wfmm_plan *plan, char *buf, size_t capacity, size_t *out_length);

/**
 * Tells what the last evaluation did: order, depth, cells, pairs, bytes, seconds per pass. The caller sets
 * report->struct_size to sizeof *report before. Cells, pairs and seconds are 0 where nothing was evaluated yet.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
 * Example: wfmm_report r; r.struct_size = sizeof r; wfmm_plan_report(p, &r);
 */
wfmm_status wfmm_plan_report(const struct wfmm_plan *plan, struct wfmm_report *report);

/**
 * Ends a plan; device arrays are no longer borrowed. *plan becomes NULL; a NULL plan is fine.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE, WFMM_ERR_BUSY.
 * Example: wfmm_plan_destroy(&p);
 */
wfmm_status wfmm_plan_destroy(struct wfmm_plan **plan);

/**
 * Sets the straight vortex segments; n = 0 removes them. Segments and particles add up.
 * points: [n_points][3], end points, any length unit. connectivity: [n][ld], ld >= 2; the first two numbers
 * of a row are the points P1, P2 of a segment, counted from index_base; positive circulation runs from P1 to P2.
 * circulation: [n], length^2/time. core_radius: [n], length, >= 0, or NULL: core_radius of the options.
 * Host arrays are copied; device arrays are borrowed until the next set or destroy.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE (ld < 2, negative radius), _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_segments_f64(p, np, x, n, 2, ends, gamma, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_segments_f32(struct wfmm_plan *plan,
                                       int64_t n_points,
                                       const float *points,
                                       int64_t n,
                                       int64_t ld,
                                       const int32_t *connectivity,
                                       const float *circulation,
                                       const float *core_radius,
                                       int32_t memory);

/**
 * Sets the straight vortex segments; n = 0 removes them. Segments and particles add up.
 * points: [n_points][3], end points, any length unit. connectivity: [n][ld], ld >= 2; the first two numbers
 * of a row are the points P1, P2 of a segment, counted from index_base; positive circulation runs from P1 to P2.
 * circulation: [n], length^2/time. core_radius: [n], length, >= 0, or NULL: core_radius of the options.
 * Host arrays are copied; device arrays are borrowed until the next set or destroy.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE (ld < 2, negative radius), _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_segments_f64(p, np, x, n, 2, ends, gamma, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_segments_f64(struct wfmm_plan *plan,
                                       int64_t n_points,
                                       const double *points,
                                       int64_t n,
                                       int64_t ld,
                                       const int32_t *connectivity,
                                       const double *circulation,
                                       const double *core_radius,
                                       int32_t memory);

/**
 * Sets the vortex particles; n = 0 removes them. Segments and particles add up.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n], length, >= 0, or NULL:
 * core_radius of the options. Host arrays are copied; device arrays are borrowed until the next set or destroy.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE (negative radius), _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_particles_f64(p, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_particles_f32(struct wfmm_plan *plan,
                                        int64_t n,
                                        const float *position,
                                        const float *strength,
                                        const float *core_radius,
                                        int32_t memory);

/**
 * Sets the vortex particles; n = 0 removes them. Segments and particles add up.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n], length, >= 0, or NULL:
 * core_radius of the options. Host arrays are copied; device arrays are borrowed until the next set or destroy.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE (negative radius), _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_particles_f64(p, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_particles_f64(struct wfmm_plan *plan,
                                        int64_t n,
                                        const double *position,
                                        const double *strength,
                                        const double *core_radius,
                                        int32_t memory);

/**
 * Sets the charges of the potential sum(q/r); n = 0 removes them.
 * position: [n][3], length. charge: [n]. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_charges_f64(p, n, x, q, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_charges_f32(struct wfmm_plan *plan,
                                      int64_t n,
                                      const float *position,
                                      const float *charge,
                                      int32_t memory);

/**
 * Sets the charges of the potential sum(q/r); n = 0 removes them.
 * position: [n][3], length. charge: [n]. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_charges_f64(p, n, x, q, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_charges_f64(struct wfmm_plan *plan,
                                      int64_t n,
                                      const double *position,
                                      const double *charge,
                                      int32_t memory);

/**
 * Sets new strengths at the same places; trees and lists are kept. A NULL array keeps the strengths that are there,
 * and its count is not looked at; each other count must be the one that was set.
 * circulation: [n_segments]. strength: [n_particles][3]. charge: [n_charges]. Ownership as in the sets.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_strengths_f64(p, n, gamma, 0, NULL, 0, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_strengths_f32(struct wfmm_plan *plan,
                                        int64_t n_segments,
                                        const float *circulation,
                                        int64_t n_particles,
                                        const float *strength,
                                        int64_t n_charges,
                                        const float *charge,
                                        int32_t memory);

/**
 * Sets new strengths at the same places; trees and lists are kept. A NULL array keeps the strengths that are there,
 * and its count is not looked at; each other count must be the one that was set.
 * circulation: [n_segments]. strength: [n_particles][3]. charge: [n_charges]. Ownership as in the sets.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_strengths_f64(p, n, gamma, 0, NULL, 0, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_strengths_f64(struct wfmm_plan *plan,
                                        int64_t n_segments,
                                        const double *circulation,
                                        int64_t n_particles,
                                        const double *strength,
                                        int64_t n_charges,
                                        const double *charge,
                                        int32_t memory);

/**
 * Sets the targets; n = 0: none. Sources and what was computed of them are kept.
 * position: [n][3], length. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_targets_f32(struct wfmm_plan *plan, int64_t n, const float *position, int32_t memory);

/**
 * Sets the targets; n = 0: none. Sources and what was computed of them are kept.
 * position: [n][3], length. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_targets_f64(struct wfmm_plan *plan, int64_t n, const double *position, int32_t memory);

/**
 * Computes the velocity of segments and particles at the targets, and its gradient where that is wanted.
 * velocity: [n_targets][3], length/time. gradient: [n_targets][3][3], g[k][i][j] = du_i/dx_j of target k, or NULL.
 * Overwritten, or added to under WFMM_FLAG_ACCUMULATE; written only on success, or in part before a negative status.
 * No targets: nothing is written and the outputs may be NULL; no sources (n = 0): zero.
 * Precision of the computation: that of the options; ARRAYS means double where one array of the plan or the outputs
 * is double, else single.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _CONSTANT (memory), _OVERLAP, _MEMORY, _TOLERANCE; 100..199 where the device or its memory is missing;
 * WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_f32(struct wfmm_plan *plan, float *velocity, float *gradient, int32_t memory);

/**
 * Computes the velocity of segments and particles at the targets, and its gradient where that is wanted.
 * velocity: [n_targets][3], length/time. gradient: [n_targets][3][3], g[k][i][j] = du_i/dx_j of target k, or NULL.
 * Overwritten, or added to under WFMM_FLAG_ACCUMULATE; written only on success, or in part before a negative status.
 * No targets: nothing is written and the outputs may be NULL; no sources (n = 0): zero.
 * Precision of the computation: that of the options; ARRAYS means double where one array of the plan or the outputs
 * is double, else single.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _CONSTANT (memory), _OVERLAP, _MEMORY, _TOLERANCE; 100..199 where the device or its memory is missing;
 * WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_f64(struct wfmm_plan *plan, double *velocity, double *gradient, int32_t memory);

/**
 * Computes the potential of the charges at the targets, and its gradient where that is wanted.
 * potential: [n_targets]. gradient: [n_targets][3] or NULL. All else as in wfmm_plan_evaluate_*.
 * Example: wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_potential_f32(struct wfmm_plan *plan, float *potential, float *gradient, int32_t memory);

/**
 * Computes the potential of the charges at the targets, and its gradient where that is wanted.
 * potential: [n_targets]. gradient: [n_targets][3] or NULL. All else as in wfmm_plan_evaluate_*.
 * Example: wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_potential_f64(struct wfmm_plan *plan,
                                             double *potential,
                                             double *gradient,
                                             int32_t memory);

/**
 * Computes the field that was evaluated last (before any: the velocity, or the potential of a plan with charges only)
 * again at n_samples targets and compares it with the direct sum in double precision. out_relative_l2: the error,
 * relative L2. seed chooses the targets; n_samples >= n_targets: all targets. Gradients are not compared. On a GPU
 * all targets are evaluated again, without gradient: report and recipe are those of that evaluation then.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE, _COUNT (n_samples < 1), _TOLERANCE;
 * 100..199 where the device or its memory is missing; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: double e; wfmm_plan_check_f64(p, 1000, 1, &e);
 */
wfmm_status wfmm_plan_check_f32(struct wfmm_plan *plan, int64_t n_samples, uint64_t seed, float *out_relative_l2);

/**
 * Computes the field that was evaluated last (before any: the velocity, or the potential of a plan with charges only)
 * again at n_samples targets and compares it with the direct sum in double precision. out_relative_l2: the error,
 * relative L2. seed chooses the targets; n_samples >= n_targets: all targets. Gradients are not compared. On a GPU
 * all targets are evaluated again, without gradient: report and recipe are those of that evaluation then.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE, _COUNT (n_samples < 1), _TOLERANCE;
 * 100..199 where the device or its memory is missing; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: double e; wfmm_plan_check_f64(p, 1000, 1, &e);
 */
wfmm_status wfmm_plan_check_f64(struct wfmm_plan *plan, int64_t n_samples, uint64_t seed, double *out_relative_l2);

/**
 * Starts what wfmm_plan_evaluate_* does and returns; the host goes on with its own work, and the fields are
 * written when wfmm_plan_wait returns 0. While it runs every other call with this plan is WFMM_ERR_BUSY; always call
 * wfmm_plan_wait, or its status is lost. Until then another one cannot be started (WFMM_ERR_BUSY), and velocity,
 * gradient and borrowed device arrays must stay where they are. From Fortran they must be contiguous and be target
 * or asynchronous where they are declared: a temporary would be gone.
 * velocity: [n_targets][3]. gradient: [n_targets][3][3], or NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT (memory), _OVERLAP, _MEMORY;
 * WFMM_ERR_THREADS; all others are those of wfmm_plan_wait.
 * Example: wfmm_plan_evaluate_async_f64(p, u, NULL, WFMM_MEMORY_HOST); move_bodies(); wfmm_plan_wait(p);
 */
wfmm_status wfmm_plan_evaluate_async_f32(struct wfmm_plan *plan, float *velocity, float *gradient, int32_t memory);

/**
 * Starts what wfmm_plan_evaluate_* does and returns; the host goes on with its own work, and the fields are
 * written when wfmm_plan_wait returns 0. While it runs every other call with this plan is WFMM_ERR_BUSY; always call
 * wfmm_plan_wait, or its status is lost. Until then another one cannot be started (WFMM_ERR_BUSY), and velocity,
 * gradient and borrowed device arrays must stay where they are. From Fortran they must be contiguous and be target
 * or asynchronous where they are declared: a temporary would be gone.
 * velocity: [n_targets][3]. gradient: [n_targets][3][3], or NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT (memory), _OVERLAP, _MEMORY;
 * WFMM_ERR_THREADS; all others are those of wfmm_plan_wait.
 * Example: wfmm_plan_evaluate_async_f64(p, u, NULL, WFMM_MEMORY_HOST); move_bodies(); wfmm_plan_wait(p);
 */
wfmm_status wfmm_plan_evaluate_async_f64(struct wfmm_plan *plan, double *velocity, double *gradient, int32_t memory);

/**
 * Waits for the evaluation that wfmm_plan_evaluate_async_* started and returns its status; 0 where none is under way.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, and those of wfmm_plan_evaluate_*.
 * Example: if (wfmm_plan_wait(p)) return 1;
 */
wfmm_status wfmm_plan_wait(struct wfmm_plan *plan);

/**
 * Names the CUDA stream (cudaStream_t, CUstream) on which the caller makes this plan's device arrays: an
 * evaluation begins after the work that the stream has then. NULL, the default: the default stream. The stream must live
 * as long as the plan uses it. Without a GPU nothing happens.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: wfmm_plan_set_stream(p, stream);
 */
wfmm_status wfmm_plan_set_stream(struct wfmm_plan *plan,
                                 void *stream);

/**
 * Page-locks the caller's memory at array, bytes long, once: fields then cross the bus straight into it. It stays
 * locked until wfmm_session_unregister, which must come before the memory is freed. Without a GPU nothing happens.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, _HANDLE, _COUNT; WFMM_ERR_DRIVER where the driver refuses.
 * Example: wfmm_session_register(s, u, 3 * m * sizeof *u);
 */
wfmm_status wfmm_session_register(struct wfmm_session *session, void *array, int64_t bytes);

/**
 * Ends what wfmm_session_register began.
 * Thread rule: any thread; not while an evaluation uses the array. Errors: WFMM_ERR_NULL, _HANDLE; WFMM_ERR_DRIVER.
 * Example: wfmm_session_unregister(s, u);
 */
wfmm_status wfmm_session_unregister(struct wfmm_session *session, void *array);

/**
 * Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory.
 * points: [n_points][3]. connectivity: [n][ld], counted from options->index_base. circulation: [n].
 * core_radius: [n] or NULL. target: [n_targets][3]. options may be NULL. velocity: [n_targets][3].
 * gradient: [n_targets][3][3] or NULL. See wfmm_plan_set_segments_* and wfmm_plan_evaluate_*.
 * Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
 * Example: wfmm_induce_segments_f64(np, x, n, 2, ends, gamma, NULL, m, y, NULL, u, NULL);
 */
wfmm_status wfmm_induce_segments_f32(int64_t n_points,
                                     const float *points,
                                     int64_t n,
                                     int64_t ld,
                                     const int32_t *connectivity,
                                     const float *circulation,
                                     const float *core_radius,
                                     int64_t n_targets,
                                     const float *target,
                                     const struct wfmm_plan_options *options,
                                     float *velocity,
                                     float *gradient);

/**
 * Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory.
 * points: [n_points][3]. connectivity: [n][ld], counted from options->index_base. circulation: [n].
 * core_radius: [n] or NULL. target: [n_targets][3]. options may be NULL. velocity: [n_targets][3].
 * gradient: [n_targets][3][3] or NULL. See wfmm_plan_set_segments_* and wfmm_plan_evaluate_*.
 * Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
 * Example: wfmm_induce_segments_f64(np, x, n, 2, ends, gamma, NULL, m, y, NULL, u, NULL);
 */
wfmm_status wfmm_induce_segments_f64(int64_t n_points,
                                     const double *points,
                                     int64_t n,
                                     int64_t ld,
                                     const int32_t *connectivity,
                                     const double *circulation,
                                     const double *core_radius,
                                     int64_t n_targets,
                                     const double *target,
                                     const struct wfmm_plan_options *options,
                                     double *velocity,
                                     double *gradient);

/**
 * Computes the velocity of vortex particles at the targets in one call; all arrays in host memory.
 * position: [n][3]. strength: [n][3]. core_radius: [n] or NULL. target: [n_targets][3]. options may
 * be NULL. velocity: [n_targets][3]. gradient: [n_targets][3][3] or NULL.
 * See wfmm_plan_set_particles_* and wfmm_plan_evaluate_*.
 * Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
 * Example: wfmm_induce_particles_f64(n, x, alpha, sigma, m, y, NULL, u, NULL);
 */
wfmm_status wfmm_induce_particles_f32(int64_t n,
                                      const float *position,
                                      const float *strength,
                                      const float *core_radius,
                                      int64_t n_targets,
                                      const float *target,
                                      const struct wfmm_plan_options *options,
                                      float *velocity,
                                      float *gradient);

/**
 * Computes the velocity of vortex particles at the targets in one call; all arrays in host memory.
 * position: [n][3]. strength: [n][3]. core_radius: [n] or NULL. target: [n_targets][3]. options may
 * be NULL. velocity: [n_targets][3]. gradient: [n_targets][3][3] or NULL.
 * See wfmm_plan_set_particles_* and wfmm_plan_evaluate_*.
 * Thread rule: any thread, any number at once. Errors: as of those, nothing is written.
 * Example: wfmm_induce_particles_f64(n, x, alpha, sigma, m, y, NULL, u, NULL);
 */
wfmm_status wfmm_induce_particles_f64(int64_t n,
                                      const double *position,
                                      const double *strength,
                                      const double *core_radius,
                                      int64_t n_targets,
                                      const double *target,
                                      const struct wfmm_plan_options *options,
                                      double *velocity,
                                      double *gradient);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WAKEFMM_H */
