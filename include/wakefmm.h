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
 * A handle that is not, or no longer, a live session, plan or flow.
 */
#define WFMM_ERR_HANDLE 2

/**
 * A count or size that is negative, too large or not the expected one.
 */
#define WFMM_ERR_COUNT 3

/**
 * A number that is not a constant of this enumeration, or a flag that does not exist.
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
 * Called too early: sources or targets have not been set, or dust was given to a flow without fluid_viscosity.
 */
#define WFMM_ERR_STATE 8

/**
 * Another thread is using this plan or flow.
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
 * The host's velocity callback of a flow returned a number that is not a status from 1 to 199; the step was
 * stopped.
 */
#define WFMM_ERR_CALLBACK 16

/**
 * A file that cannot be read or written, or is not a complete checkpoint of a flow.
 */
#define WFMM_ERR_FILE 17

/**
 * There is a driver, but no usable GPU, or no GPU with the requested number.
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
 * Not implemented: the message says what, and what to use instead.
 */
#define WFMM_ERR_UNSUPPORTED 105

/**
 * A function of the communicator failed: other ranks may be gone.
 */
#define WFMM_ERR_COMMUNICATION 106

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
 * _NONE for both. A radius of 0 means the singular kernel for that element. Full references: docs/theory.md.
 * 
 * Singular kernel. Segments: F = 1. Particles: S = 1/r^3.
 */
#define WFMM_REG_NONE 0

/**
 * Segments: F = min(1, rho^2/c^2).
 */
#define WFMM_REG_RANKINE 1

/**
 * Segments: F = 1 - exp(-1.25643 rho^2/c^2); the velocity of a long segment is largest at rho = c.
 */
#define WFMM_REG_LAMB_OSEEN 2

/**
 * Segments: F = rho^2/sqrt(c^4 + rho^4) (Vatistas et al. 1991, n = 2); the default of segments.
 */
#define WFMM_REG_VATISTAS 3

/**
 * Segments: F = rho^2/(c^2 + rho^2) (Scully 1975; Vatistas et al. 1991, n = 1).
 */
#define WFMM_REG_SCULLY 4

/**
 * Segments: F = 1, and D + c^2 |P2-P1|^2 in place of D (van Garrel 2003).
 */
#define WFMM_REG_OFFSET 5

/**
 * Particles: S = (erf(q/sqrt 2) - sqrt(2/pi) q exp(-q^2/2))/r^3, q = r/c (Winckelmans and Leonard 1993); the default of
 * particles.
 */
#define WFMM_REG_GAUSS_ERF 6

/**
 * Particles: S = (1 - exp(-r^3/c^3))/r^3 (OpenFAST's OLAF).
 */
#define WFMM_REG_EXPONENTIAL 7

/**
 * Particles: S = 1/sqrt(r^6 + c^6) (OpenFAST's OLAF).
 */
#define WFMM_REG_COMPACT 8

/**
 * Particles: S = (r^2 + c^2)^(-3/2) (Rosenhead 1930).
 */
#define WFMM_REG_ROSENHEAD 9

/**
 * Particles: S = (r^2 + 5/2 c^2)(r^2 + c^2)^(-5/2) (Winckelmans and Leonard 1993).
 */
#define WFMM_REG_WINCKELMANS 10

/**
 * Particles: S = K/r^3, K = (r/c)^2 for r <= c, else 1 (Hu et al. 2013, eq. 29).
 */
#define WFMM_REG_POLYNOMIAL 11

/**
 * How the sums are computed.
 * 
 * Direct sum, fast multipole method or treecode, whichever the cost model expects to be fastest. On a GPU
 * it does not consider the treecode.
 */
#define WFMM_METHOD_AUTO 0

/**
 * Every pair.
 */
#define WFMM_METHOD_DIRECT 1

/**
 * The fast multipole method. A GPU sums directly what has no FMM there: WFMM_REG_OFFSET, and tolerances that
 * its orders do not reach. method of the report has what was done.
 */
#define WFMM_METHOD_FMM 2

/**
 * Multipoles evaluated at the targets, without local expansions. A GPU sums directly what has no FMM there.
 * WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with a period.
 */
#define WFMM_METHOD_TREECODE 3

/**
 * What the far field is expanded in.
 * 
 * Solid harmonics.
 */
#define WFMM_EXPANSION_HARMONICS 0

/**
 * Strengths of particles on a sphere around each cell. Slower than harmonics; for comparison. By the FMM, with
 * orders up to 16 (in single precision on a GPU 11). WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with
 * the treecode or a period, and by evaluate where the tolerance is missed.
 */
#define WFMM_EXPANSION_PSEUDO_PARTICLES 1

/**
 * Precision of the computation.
 * 
 * That of the arrays: double if one of the arrays is double, else single, but double at tolerances below 1e-4 on a CPU
 * (unless an FMM or treecode sums velocities of particles alone). An FMM of double arrays (on the CPU also a
 * treecode) computes velocities in single precision where that keeps the tolerance (1e-4 or more, of particles
 * alone and on a GPU 1e-6 or more) and is faster, unless WFMM_FLAG_REPRODUCIBLE is set; precision of the report says so.
 */
#define WFMM_PRECISION_ARRAYS 0

/**
 * Single. Where its range or digits are not enough (a point far away, cores much larger than the extent of the
 * elements, on a CPU a tolerance below 1e-4, unless an FMM or treecode sums velocities of particles alone) the computation
 * is done in double. A warning and precision of the report say so.
 */
#define WFMM_PRECISION_F32 1

/**
 * Double.
 */
#define WFMM_PRECISION_F64 2

/**
 * Where the sums are computed.
 * 
 * A CUDA device where there is one and the problem has at least 200,000 pairs or arrays in device memory, else the CPU.
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
 * Device memory: a plan borrows inputs until the next set_* or destroy; a flow copies them.
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
 * Errors.
 */
#define WFMM_LOG_ERROR 1

/**
 * Errors and fallbacks. A fallback is a computation in another way than requested, for example on the CPU or
 * in double precision.
 */
#define WFMM_LOG_WARN 2

/**
 * The above, and one line per plan with its recipe and the seconds of each pass.
 */
#define WFMM_LOG_INFO 3

/**
 * The above, and details.
 */
#define WFMM_LOG_DEBUG 4

/**
 * flags of a plan: results are added to the output arrays instead of overwriting them.
 */
#define WFMM_FLAG_ACCUMULATE 1

/**
 * flags of a plan: the same inputs give the same bits, whatever the number of threads, the load of the machine and
 * what the plan or the process did before. This holds for one instruction set and one model of GPU. On a distributed session
 * on CPUs fields agree to rounding whatever the number of ranks; by expansions each rank then holds all sources and targets.
 */
#define WFMM_FLAG_REPRODUCIBLE 2

/**
 * flags of a plan on a distributed session: each rank computes with its own sources and targets, as the host has
 * divided them. Without the flag they are divided anew, by the work of the evaluation before. No effect on other
 * sessions, nor with WFMM_FLAG_REPRODUCIBLE on CPUs.
 */
#define WFMM_FLAG_HOST_PARTITION 4

/**
 * The smallest tolerance that single precision is promised to hold.
 */
#define WFMM_TOLERANCE_MIN_F32 5e-6

/**
 * The smallest tolerance that double precision is promised to hold.
 */
#define WFMM_TOLERANCE_MIN_F64 5e-12

/**
 * The highest order of expansions that may be requested.
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
 * Multipoles to targets: the treecode.
 */
#define WFMM_PASS_M2P 11

/**
 * Length of seconds in a report; entries without a WFMM_PASS_* name are 0.
 */
#define WFMM_PASS_COUNT 16

/**
 * Elements of a flow.
 * 
 * Vortex particles: position, strength, core radius.
 */
#define WFMM_KIND_PARTICLES 0

/**
 * Vortex filaments: segments whose points move; the circulation is kept.
 */
#define WFMM_KIND_FILAMENTS 1

/**
 * Segments that induce and do not move: the host sets them again.
 */
#define WFMM_KIND_BOUND_SEGMENTS 2

/**
 * Points that move with the fluid.
 */
#define WFMM_KIND_TRACERS 3

/**
 * Inertial parcels: drag, gravity, buoyancy, ground contact.
 */
#define WFMM_KIND_DUST 4

/**
 * What wfmm_flow_get_* returns.
 * 
 * Three numbers a row, length: of a particle, tracer, parcel, or point of filaments or bound segments.
 */
#define WFMM_QUANTITY_POSITION 0

/**
 * Three numbers a row: strength of particles, length^3/time.
 */
#define WFMM_QUANTITY_STRENGTH 1

/**
 * One number a row: core radius of particles and segments, length.
 */
#define WFMM_QUANTITY_CORE_RADIUS 2

/**
 * Three numbers a row, length/time, in the order of the positions: the velocity of the fluid at the present time; for dust
 * the velocity of the parcel.
 */
#define WFMM_QUANTITY_VELOCITY 3

/**
 * One number a segment: circulation, length^2/time.
 */
#define WFMM_QUANTITY_CIRCULATION 4

/**
 * One number a parcel of dust: diameter, length.
 */
#define WFMM_QUANTITY_DIAMETER 5

/**
 * One number a parcel of dust: density, mass/length^3.
 */
#define WFMM_QUANTITY_DENSITY 6

/**
 * How a flow steps in time.
 * 
 * Order 1, one evaluation a step.
 */
#define WFMM_INTEGRATOR_EULER 0

/**
 * Adams-Bashforth, order 2, one evaluation a step; two where elements were added, vortices removed, bound segments set in
 * another number or connectivity or the velocity callback set since the last step, or where the step is more than 100 times as
 * long. The step size may vary.
 */
#define WFMM_INTEGRATOR_AB2 1

/**
 * Low-storage Runge-Kutta, order 3, three evaluations a step.
 */
#define WFMM_INTEGRATOR_RK3 2

/**
 * Runge-Kutta, order 4, four evaluations a step; the default.
 */
#define WFMM_INTEGRATOR_RK4 3

/**
 * How the strength a of particles follows the velocity gradient J, J_ij = du_i/dx_j.
 * 
 * Strengths are constant; the default.
 */
#define WFMM_STRETCHING_NONE 0

/**
 * da_i/dt = J_ij a_j.
 */
#define WFMM_STRETCHING_CLASSICAL 1

/**
 * da_i/dt = J_ji a_j. Keeps the sum of a among particles of equal core radii, in free space or with periods; with a ground
 * plane its normal component. Segments change the sum.
 */
#define WFMM_STRETCHING_TRANSPOSE 2

/**
 * Half of each.
 */
#define WFMM_STRETCHING_MIXED 3

/**
 * How viscosity acts on particles.
 * 
 * Not at all; the default.
 */
#define WFMM_SPREADING_NONE 0

/**
 * Cores spread: d(c^2)/dt = 2 viscosity. Gaussian cores only (WFMM_REG_GAUSS_ERF).
 */
#define WFMM_SPREADING_CORES 1

/**
 * Why a diagnostic is NaN.
 * 
 * It is not NaN.
 */
#define WFMM_REASON_KNOWN 0

/**
 * Particles have another core than GAUSS_ERF.
 */
#define WFMM_REASON_KERNEL 1

/**
 * There are filaments or bound segments.
 */
#define WFMM_REASON_SEGMENTS 2

/**
 * There are more than 8,192 particles; the diagnostic is a sum over all pairs.
 */
#define WFMM_REASON_TOO_MANY 3

/**
 * A particle has no core: its energy and enstrophy are infinite.
 */
#define WFMM_REASON_SINGULAR 4

/**
 * The domain is periodic; the sums over pairs are those of free space.
 */
#define WFMM_REASON_PERIODIC 5

/**
 * How a camera maps space to a picture.
 * 
 * What is farther is smaller; the default.
 */
#define WFMM_PROJECTION_PERSPECTIVE 0

/**
 * Parallel lines of sight.
 */
#define WFMM_PROJECTION_ORTHOGRAPHIC 1

/**
 * What the colors of a picture say.
 * 
 * The kind of the element; the default.
 */
#define WFMM_COLOR_KIND 0

/**
 * The speed: of dust its own, else the fluid's there; of segments the mean of their ends.
 */
#define WFMM_COLOR_SPEED 1

/**
 * The order in which the elements of a kind came: the newest at the upper end of the scale.
 */
#define WFMM_COLOR_AGE 2

/**
 * Points: the number of points behind each other, as the opacity of the pixel. Lines: their kind.
 */
#define WFMM_COLOR_DENSITY 3

/**
 * How points act on what is behind them.
 * 
 * They cover it: 1 - exp(-opacity x points in a pixel); the default.
 */
#define WFMM_BLENDING_OPACITY 0

/**
 * They add light to it.
 */
#define WFMM_BLENDING_ADDITIVE 1

/**
 * Version of the binary interface; grows when a caller must be compiled again.
 */
#define WFMM_ABI_VERSION 1

/**
 * First number of the version that this file was made for; wfmm_version tells the loaded library's.
 */
#define WFMM_VERSION_MAJOR 0

/**
 * Second number of the version that this file was made for; wfmm_version tells the loaded library's.
 */
#define WFMM_VERSION_MINOR 1

/**
 * Third number of the version that this file was made for; wfmm_version tells the loaded library's.
 */
#define WFMM_VERSION_PATCH 0

/**
 * Vortex elements, tracers and dust that move step by step. One thread at a time; a second caller gets WFMM_ERR_BUSY.
 */
typedef struct wfmm_flow wfmm_flow;

/**
 * Sources, targets, tree and results of one sum. One thread at a time; a second caller gets WFMM_ERR_BUSY.
 */
typedef struct wfmm_plan wfmm_plan;

/**
 * Back end, device and threads. Any thread may use it.
 */
typedef struct wfmm_session wfmm_session;

/**
 * Result of a call: 0 ok; 1..99 the caller's error, nothing changed; 100..199 a resource is missing, may be retried;
 * negative: the object is unusable, only destroy is allowed. See WFMM_ERR_*.
 */
typedef int32_t wfmm_status;

/**
 * Receives log lines: a WFMM_LOG_* level, a NUL-terminated message that is valid during the call, and user.
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
     * Number of host threads, up to 4096. 0, the default: the number in the environment variable WAKEFMM_NUM_THREADS,
     * else the first number in OMP_NUM_THREADS, else all that the process may use (its CPU affinity and the CPU quota
     * of its control group). A variable without a number is ignored, with one warning. The same holds for the default
     * session.
     */
    int32_t threads;
    /**
     * No flag is defined yet: 0.
     */
    uint64_t flags;
    /**
     * How many device numbers devices has, up to 64; default 0.
     */
    int32_t n_devices;
    /**
     * 0.
     */
    int32_t reserved;
    /**
     * Numbers of the CUDA devices that compute together, read while the session is made; the default, NULL: device alone.
     * Every device has all sources and a part of the targets. Arrays in device memory are those of the first one, which
     * also holds the state of flows. A number may stand more than once. Not for distributed sessions, of which each rank
     * has one device: WFMM_ERR_UNSUPPORTED. No effect with WFMM_BACKEND_CPU.
     */
    const int32_t *devices;
} wfmm_session_options;

/**
 * Functions by which the processes (ranks) of a distributed session communicate; libwakefmm_mpi has those for MPI. Set it to zero,
 * then struct_size to sizeof. Each function but release is called on all ranks in the same order, on the thread that calls the
 * library, and returns 0. Another number is WFMM_ERR_COMMUNICATION on every rank that can still be reached, in this call of the
 * library or the next. A function that fails on some ranks must not leave the others waiting in it. Functions and user must stay
 * until the session and its last plan or flow have ended.
 */
typedef struct wfmm_communicator {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * This process, 0 to size - 1.
     */
    int32_t rank;
    /**
     * Number of processes.
     */
    int32_t size;
    /**
     * Number of this process among those of its node: processes take the node's GPUs in turn.
     */
    int32_t node_rank;
    /**
     * Handed to every function.
     */
    void *user;
    /**
     * Reduces n values over all ranks, in place. kind: 0 double, 1 int64_t; operation: 0 sum, 1 least, 2 largest.
     */
    int32_t (*allreduce)(void *user, void *values, int64_t n, int32_t kind, int32_t operation);
    /**
     * Brings the same number of bytes of each rank to all; all gets size times bytes, in the order of ranks.
     */
    int32_t (*allgather)(void *user, const void *mine, int64_t bytes, void *all);
    /**
     * Sends bytes to each rank and receives bytes of each. Numbers of bytes and offsets, in bytes too, are arrays of size
     * numbers. memory is WFMM_MEMORY_HOST.
     */
    int32_t (*alltoallv)(void *user,
                         const void *send,
                         const int64_t *send_bytes,
                         const int64_t *send_offsets,
                         void *receive,
                         const int64_t *receive_bytes,
                         const int64_t *receive_offsets,
                         int32_t memory);
    /**
     * Waits until every rank is there.
     */
    int32_t (*barrier)(void *user);
    /**
     * Told once on each rank that the session and its plans and flows have ended, or that the session was not made; or NULL. Ranks
     * are told at different times, on any thread: it must not communicate. Not called for a communicator that is refused itself.
     */
    void (*release)(void *user);
} wfmm_communicator;

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
     * Truncation order of the expansions, at most WFMM_ORDER_MAX. 0, the default: derived from the tolerance. On the
     * CPU every expansion has this order, and pairs of cells that need a higher one are summed directly. On a GPU it
     * is a lower bound, and the order is at most 16. In single precision it is at most 11, except for harmonics of
     * vortices at tolerances below 1e-4 outside of boxes with three equal periods.
     */
    int32_t order;
    /**
     * Largest number of elements in a leaf of the tree; 0, the default: chosen by the library. On a GPU values below 8
     * count as 8, above 512 as 512.
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
     * Largest relative L2 error of the velocity (or potential) over all targets, against the exact, regularized sum;
     * default 1e-4. The error of gradients may be 30 times as large, relative to their own norm. A tolerance above 0.1
     * counts as 0.1; wfmm_plan_recipe says so.
     */
    double tolerance;
    /**
     * Factor s of all sums; default 1/(4 pi). 1 gives sums without the factor.
     */
    double normalization;
    /**
     * Core radius where no array of radii is given, a length; default 0, the singular kernel. A plan with a regularization
     * other than NONE and no radius above 0 logs a warning once and says so in its recipe.
     */
    double core_radius;
    /**
     * WFMM_FLAG_*, or-ed; default 0.
     */
    uint64_t flags;
    /**
     * Axis normal to an impermeable ground plane: 1 x, 2 y, 3 z; 0, the default: no plane. The images of all sources
     * are included, with their cores. Images of charges have the same sign. Targets below the plane get the mirrored
     * field. With a plane, velocity and gradient must both be in host memory, or both in device memory; on distributed
     * sessions targets and outputs must be in host memory.
     */
    int32_t plane_axis;
    /**
     * WFMM_EXPANSION_*; default HARMONICS.
     */
    int32_t expansion;
    /**
     * Where the plane is on its axis, length units of the positions; default 0.
     */
    double plane_position;
    /**
     * Period along x, y and z, a length; 0, the default: open. One, two or three periodic axes make a tube, a slab or
     * a box. The field is that of all images of all elements. Positions outside of a period are moved back into it,
     * segments by their middles. In a box a uniform background balances a net strength, and the mean of velocity and
     * potential is zero. In tubes and slabs images are summed symmetrically; charges must add to zero, else
     * WFMM_ERR_VALUE. WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create for a period along the normal of a ground
     * plane, and for a period more than 1e6 times as long as another; by evaluate for an extent of very many periods, for
     * cores that reach through many periods, for particles of GAUSS_ERF in a box with cores above half of its longest
     * period, and with WFMM_BACKEND_CUDA where sources with the near images of a tube, slab or box of unequal sides are
     * too many, or for segments several periods long in a box with equal sides.
     */
    double period[3];
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
     * Cell pairs of the far field; for a treecode pairs of a cell and a group of targets. 0 on a GPU.
     */
    int64_t far_pairs;
    /**
     * Element pairs that were summed directly, those of the core correction included.
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
     * Error of the fast multipole method, or the treecode, found at the sampled targets: the larger of the relative L2
     * error of the velocity (potential) and a thirtieth of the gradient's; on a GPU with three standard errors added. 0
     * after a direct sum.
     */
    double estimated_error;
    /**
     * Wall-clock seconds of each pass, indexed by WFMM_PASS_*. On the CPU a pass whose result was kept has 0. On a GPU
     * small evaluations are timed as a whole, since timers between the passes would slow them; one in sixteen is timed pass
     * by pass, and its proportions are used for the others.
     */
    double seconds[WFMM_PASS_COUNT];
    /**
     * Element pairs of the core correction: far pairs at which the regularized kernel still differs from the singular one.
     * 0 on a GPU, which counts them in near_pairs only.
     */
    int64_t core_pairs;
    /**
     * Times that the field missed its tolerance at the sampled targets and was computed again: with higher orders, in double
     * precision or directly.
     */
    int64_t retries;
    /**
     * Kinds of elements that have a regularization but no core radius above 0, so that their kernel is singular: 1 segments, 2 particles,
     * 3 both, 0 none. Radii in device memory are not read.
     */
    int64_t singular;
} wfmm_report;

/**
 * Options of a flow. Fill with wfmm_flow_options_init and change what is wanted.
 */
typedef struct wfmm_flow_options {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_INTEGRATOR_*; default RK4.
     */
    int32_t integrator;
    /**
     * WFMM_STRETCHING_* of particles; default NONE.
     */
    int32_t stretching;
    /**
     * WFMM_SPREADING_* of particles; default NONE.
     */
    int32_t spreading;
    /**
     * Kinematic viscosity, length^2/time; default 0. Core radii of filaments follow
     * d(c^2)/dt = 4 x 1.25643 (viscosity + squire |circulation|) - c^2 (dl/dt)/l, l the length of a segment.
     */
    double viscosity;
    /**
     * Squire's factor of |circulation| in the growth of filament cores (Squire 1965), a number without unit; default 0.
     */
    double squire;
    /**
     * Core radius, a length, above which particles that spread get narrower cores, of core_limit/sqrt(2), and strengths that
     * carry the same vorticity; 0, the default: never. Needs WFMM_SPREADING_CORES. WFMM_ERR_UNSUPPORTED with a period.
     */
    double core_limit;
    /**
     * Length above which filament segments are split into equal pieces after a step; 0, the default: never.
     */
    double split_length;
    /**
     * Acceleration of dust by gravity, length/time^2; default 0.
     */
    double gravity[3];
    /**
     * Density of the fluid, mass/length^3, for buoyancy and Reynolds number of dust; 0, the default: no buoyancy, and Stokes
     * drag at any Reynolds number.
     */
    double fluid_density;
    /**
     * Dynamic viscosity of the fluid, mass/(length time), for the drag of dust; 0, the default: dust is refused.
     */
    double fluid_viscosity;
    /**
     * Coefficient of restitution of dust at the ground plane, 0 to 1: the share of the normal velocity that is kept,
     * reversed; default 0.
     */
    double restitution;
    /**
     * Share of its tangential velocity that dust loses at the ground plane, 0 to 1; default 0.
     */
    double friction;
    /**
     * 0.
     */
    double reserved[4];
    /**
     * No flag is defined yet: 0.
     */
    uint64_t flags;
} wfmm_flow_options;

/**
 * Adds the host's own velocity at n points of a flow: position and velocity are [n][3]; velocity holds what is there
 * already. Return 0 to go on; another number stops the step. memory says where both arrays are. On a session of
 * one process made with WFMM_BACKEND_CUDA it is WFMM_MEMORY_DEVICE, and stream is the cudaStream_t on which to
 * queue the work; there is no need to wait for it. On all other sessions (WFMM_BACKEND_AUTO, WFMM_BACKEND_CPU, all of
 * several processes) it is WFMM_MEMORY_HOST, and stream is NULL. user is that of
 * wfmm_flow_set_velocity_callback.
 */
typedef int32_t (*wfmm_velocity_fn)(double time,
                                    int64_t n,
                                    const double *position,
                                    double *velocity,
                                    int32_t memory,
                                    void *stream,
                                    void *user);

/**
 * Invariants and norms of a flow. Set struct_size with wfmm_diagnostics_init before the call.
 */
typedef struct wfmm_diagnostics {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_REASON_*: why energy, enstrophy and divergence are NaN, or KNOWN.
     */
    int32_t reason;
    /**
     * Time of the flow.
     */
    double time;
    /**
     * Sum of the strengths a of particles, and of circulation times length vector of filaments and bound segments,
     * length^3/time.
     */
    double total_strength[3];
    /**
     * Half the sum of x cross a, a as above, x at the middle of a segment, length^4/time. With a ground plane only its
     * tangential components are conserved.
     */
    double linear_impulse[3];
    /**
     * A third of the sum of x cross (x cross a), length^5/time. With a ground plane only its normal component is conserved.
     */
    double angular_impulse[3];
    /**
     * Half the integral of u^2, u the velocity that the particles induce, length^5/time^2; with a ground plane over the half space.
     */
    double energy;
    /**
     * Integral of |curl u|^2 over the same space, length^3/time^2.
     */
    double enstrophy;
    /**
     * Root of the integral of |omega - curl u|^2 over that of |omega|^2, omega the vorticity that the particles carry:
     * the part of it that is not free of divergence.
     */
    double divergence;
    /**
     * The largest speed of the moving points at the present time, length/time; for dust that of the parcels.
     */
    double largest_velocity;
    /**
     * The longest distance that a moving point has gone in the last step, length.
     */
    double largest_displacement;
    /**
     * How often cores above core_limit were narrowed since the flow was made or loaded.
     */
    int64_t reinterpolations;
    /**
     * Of the last time: root mean square of the change of vorticity at the particles, relative to that of the vorticity; of the
     * strengths that the particles have now, with what was added to them.
     */
    double reinterpolation_residual;
    /**
     * Of the last time: what the particles' total strength lacked, relative to the sum of magnitudes. It was added to
     * the strengths again, except with a ground plane.
     */
    double reinterpolation_strength;
    /**
     * Of the last time: the same of their impulse around the middle of their positions, relative to half the sum of |x||a|.
     */
    double reinterpolation_impulse;
} wfmm_diagnostics;

/**
 * Where a picture of a flow is taken from and how its elements look. Fill with wfmm_camera_init and change what is wanted.
 */
typedef struct wfmm_camera {
    /**
     * Size of this struct as the caller knows it.
     */
    uint32_t struct_size;
    /**
     * WFMM_PROJECTION_*; default PERSPECTIVE.
     */
    int32_t projection;
    /**
     * WFMM_COLOR_*; default KIND.
     */
    int32_t color;
    /**
     * WFMM_BLENDING_* of points; default OPACITY.
     */
    int32_t blending;
    /**
     * Kinds that are drawn: the sum of 1 << WFMM_KIND_*; default 31, all.
     */
    int32_t kinds;
    /**
     * 1, the default: eye and target give the direction only, and the camera stands where all that is drawn just fits
     * in. 0: the camera stands at eye.
     */
    int32_t fit;
    /**
     * Where the camera is; default (2, -3, 1.5).
     */
    double eye[3];
    /**
     * The point in the middle of the picture; default 0.
     */
    double target[3];
    /**
     * A direction that points upwards in the picture; default z.
     */
    double up[3];
    /**
     * Angle between the lower and the upper edge in degrees, of a perspective; default 40.
     */
    double field_of_view;
    /**
     * Length between the lower and the upper edge, of an orthographic picture without fit; default 1.
     */
    double view_height;
    /**
     * What is closer to the plane of the eye, or behind it, is not drawn; 0, the default: a thousandth of the distance
     * of eye and target.
     */
    double near_distance;
    /**
     * Diameter of tracers and dust in pixels at the distance of the target; a perspective makes it smaller or fainter beyond; default 1.5.
     * Particles have their cores' size, if that is larger.
     */
    double point_size;
    /**
     * Width of segments in pixels; default 2.
     */
    double line_width;
    /**
     * Opacity of a point; 0, the default: so that pixels with points are about half covered.
     */
    double opacity;
    /**
     * Speeds at the ends of the color scale; equal, the default: the range of what is drawn.
     */
    double color_range[2];
    /**
     * Red, green, blue, alpha behind everything, 0 to 1; default a dark blue without transparency.
     */
    double background[4];
    /**
     * Distance of the lines of a grid on the ground plane, which is drawn where the camera is above it; 0, the default: none.
     */
    double grid;
} wfmm_camera;

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
 * Sets the calling thread's last message, cut after 2048 bytes. For bindings of other languages, which check the shapes of
 * arrays themselves. message holds length bytes.
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
 * Describes in one line what the session computes on. Buffer rules as in wfmm_last_error.
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
 * Makes a session that spans processes. All ranks of communicator make it together. Calls with its plans are collective, but for
 * recipe, report, counts, workspace, set_stream and destroy: each rank hands over its own sources and targets, however many and
 * wherever they are, and gets the velocities of its own targets. An error on one rank is the same status on all, with the rank in the message. options may be NULL.
 * With GPUs each rank takes one of its node, node_rank modulo their number, unless device names one; with
 * WFMM_BACKEND_AUTO all ranks compute on the CPU where one of them has none. WFMM_ERR_UNSUPPORTED: asynchronous
 * evaluations, several devices of a rank.
 * Thread rule: one thread at a time, and one thread at a time for all plans and flows of the session, since each process has one
 * order of calls: threads that sum at the same time need a session each.
 * Errors: as of wfmm_session_create; WFMM_ERR_NULL (a function), _VALUE (rank, size);
 * WFMM_ERR_COMMUNICATION where a function of the communicator fails.
 * Example: wfmm_session *s = NULL; if (wfmm_session_create_distributed(NULL, &ranks, &s)) return 1;
 */
wfmm_status wfmm_session_create_distributed(const struct wfmm_session_options *options,
                                            const struct wfmm_communicator *communicator,
                                            struct wfmm_session **out);

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
 * _HOST_MEMORY; WFMM_ERR_UNSUPPORTED for options that exclude each other or are not built; WFMM_ERR_FORKED where
 * the session was made before fork().
 * Example: wfmm_plan *p = NULL; if (wfmm_plan_create(NULL, NULL, &p)) return 1;
 */
wfmm_status wfmm_plan_create(struct wfmm_session *session,
                             const struct wfmm_plan_options *options,
                             struct wfmm_plan **out);

/**
 * Does in advance the part of the next evaluation that needs no output arrays. On the CPU these are trees, lists
 * and orders, on a GPU the copies of the arrays. Optional: wfmm_plan_evaluate_* includes it.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _VALUE (charges that do not add up to zero in a tube or slab), _TOLERANCE; 100..199 where a resource is
 * missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: wfmm_plan_prepare(p);
 */
wfmm_status wfmm_plan_prepare(struct wfmm_plan *plan);

/**
 * Returns the numbers of elements of the plan. Each output may be NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: int64_t m; wfmm_plan_counts(p, NULL, NULL, NULL, &m);
 */
wfmm_status wfmm_plan_counts(const struct wfmm_plan *plan,
                             int64_t *n_segments,
                             int64_t *n_particles,
                             int64_t *n_charges,
                             int64_t *n_targets);

/**
 * Returns the memory that the plan uses now, in bytes: its copies of the arrays, trees, lists and expansions.
 * Each output may be NULL. Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: uint64_t host, device; wfmm_plan_workspace(p, &host, &device);
 */
wfmm_status wfmm_plan_workspace(const struct wfmm_plan *plan, uint64_t *host_bytes, uint64_t *device_bytes);

/**
 * Describes in a paragraph what was chosen (method, order, leaf size, precision) and why. Available after
 * wfmm_plan_prepare on the CPU and after the first evaluation on a GPU; before that the text says that nothing was
 * chosen. Buffer rules as in wfmm_last_error.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: char why[1024]; wfmm_plan_recipe(p, why, sizeof why, NULL); puts(why);
 */
wfmm_status wfmm_plan_recipe(const struct wfmm_plan *plan, char *buf, size_t capacity, size_t *out_length);

/**
 * Fills a report of the last evaluation: order, depth, cells, pairs, bytes, seconds per pass. The caller sets
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
 * Sets the charges of the potential s sum(q/r), s the normalization; n = 0 removes them.
 * position: [n][3], length. charge: [n], any unit. Ownership as for particles.
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
 * Sets the charges of the potential s sum(q/r), s the normalization; n = 0 removes them.
 * position: [n][3], length. charge: [n], any unit. Ownership as for particles.
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
 * Sets new strengths at the same positions; trees and lists are kept (not on distributed sessions of CPUs). A NULL
 * array keeps the present strengths, and its count is ignored; every other count must be the one that was set.
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
 * Sets new strengths at the same positions; trees and lists are kept (not on distributed sessions of CPUs). A NULL
 * array keeps the present strengths, and its count is ignored; every other count must be the one that was set.
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
 * Sets the targets; n = 0: none. The sources and their expansions are kept (expansions not on distributed sessions of
 * CPUs).
 * position: [n][3], length. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_targets_f32(struct wfmm_plan *plan, int64_t n, const float *position, int32_t memory);

/**
 * Sets the targets; n = 0: none. The sources and their expansions are kept (expansions not on distributed sessions of
 * CPUs).
 * position: [n][3], length. Ownership as for particles.
 * Thread rule: one thread at a time. Errors, which leave the plan as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT (memory), _NOT_FINITE, _MEMORY; WFMM_ERR_HOST_MEMORY.
 * Example: wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_set_targets_f64(struct wfmm_plan *plan, int64_t n, const double *position, int32_t memory);

/**
 * Computes the velocity that segments and particles induce at the targets, and optionally its gradient.
 * velocity: [n_targets][3], length/time. gradient: [n_targets][3][3], 1/time, g[k][i][j] = du_i/dx_j of target k, or
 * NULL.
 * Overwritten, or added to under WFMM_FLAG_ACCUMULATE; written only on success, or in part before a negative status
 * (in device memory: before any error).
 * No targets: nothing is written and the outputs may be NULL; no sources (n = 0): zero.
 * Precision of the computation: that of the options; for ARRAYS see WFMM_PRECISION_ARRAYS.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _CONSTANT (memory), _VALUE (charges that do not add up to zero in a tube or slab), _OVERLAP, _MEMORY,
 * _TOLERANCE; 100..199 where a resource is missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host
 * memory ran out.
 * Example: wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_f32(struct wfmm_plan *plan, float *velocity, float *gradient, int32_t memory);

/**
 * Computes the velocity that segments and particles induce at the targets, and optionally its gradient.
 * velocity: [n_targets][3], length/time. gradient: [n_targets][3][3], 1/time, g[k][i][j] = du_i/dx_j of target k, or
 * NULL.
 * Overwritten, or added to under WFMM_FLAG_ACCUMULATE; written only on success, or in part before a negative status
 * (in device memory: before any error).
 * No targets: nothing is written and the outputs may be NULL; no sources (n = 0): zero.
 * Precision of the computation: that of the options; for ARRAYS see WFMM_PRECISION_ARRAYS.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE (sources or targets were never
 * set), _CONSTANT (memory), _VALUE (charges that do not add up to zero in a tube or slab), _OVERLAP, _MEMORY,
 * _TOLERANCE; 100..199 where a resource is missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host
 * memory ran out.
 * Example: wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_f64(struct wfmm_plan *plan, double *velocity, double *gradient, int32_t memory);

/**
 * Computes the potential of the charges at the targets, and optionally its gradient.
 * potential: [n_targets], charge/length. gradient: [n_targets][3], charge/length^2, g[k][j] = dphi/dx_j of target k, or
 * NULL. All else as in wfmm_plan_evaluate_*.
 * Example: wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_potential_f32(struct wfmm_plan *plan, float *potential, float *gradient, int32_t memory);

/**
 * Computes the potential of the charges at the targets, and optionally its gradient.
 * potential: [n_targets], charge/length. gradient: [n_targets][3], charge/length^2, g[k][j] = dphi/dx_j of target k, or
 * NULL. All else as in wfmm_plan_evaluate_*.
 * Example: wfmm_plan_evaluate_potential_f64(p, phi, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_plan_evaluate_potential_f64(struct wfmm_plan *plan,
                                             double *potential,
                                             double *gradient,
                                             int32_t memory);

/**
 * Measures the error of the field that was evaluated last at n_samples targets against the direct sum in double
 * precision. Before the first evaluation the field is the velocity, or the potential of a plan with charges only.
 * out_relative_l2: the relative L2 error. seed chooses the targets; n_samples >= n_targets: all targets. Gradients
 * are not compared. The field is computed again for this; on a GPU at all targets, and report and recipe are then those
 * of that evaluation.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE, _COUNT (n_samples < 1),
 * _VALUE (charges that do not add up to zero in a tube or slab), _TOLERANCE; 100..199 where a resource is
 * missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: double e; wfmm_plan_check_f64(p, 1000, 1, &e);
 */
wfmm_status wfmm_plan_check_f32(struct wfmm_plan *plan, int64_t n_samples, uint64_t seed, float *out_relative_l2);

/**
 * Measures the error of the field that was evaluated last at n_samples targets against the direct sum in double
 * precision. Before the first evaluation the field is the velocity, or the potential of a plan with charges only.
 * out_relative_l2: the relative L2 error. seed chooses the targets; n_samples >= n_targets: all targets. Gradients
 * are not compared. The field is computed again for this; on a GPU at all targets, and report and recipe are then those
 * of that evaluation.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STATE, _COUNT (n_samples < 1),
 * _VALUE (charges that do not add up to zero in a tube or slab), _TOLERANCE; 100..199 where a resource is
 * missing or a combination is not supported; WFMM_ERR_OUT_OF_MEMORY where host memory ran out.
 * Example: double e; wfmm_plan_check_f64(p, 1000, 1, &e);
 */
wfmm_status wfmm_plan_check_f64(struct wfmm_plan *plan, int64_t n_samples, uint64_t seed, double *out_relative_l2);

/**
 * Starts the evaluation that wfmm_plan_evaluate_* makes, and returns at once. Its status is that of wfmm_plan_wait,
 * which must always be called; the fields are complete when it returns 0. Until then every other call with this plan
 * returns WFMM_ERR_BUSY, and velocity, gradient and borrowed device arrays must stay valid. In Fortran they must be
 * contiguous and have the attribute target or asynchronous: a temporary would be gone.
 * velocity: [n_targets][3]. gradient: [n_targets][3][3], or NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT (memory), _OVERLAP, _MEMORY;
 * WFMM_ERR_THREADS; all others are those of wfmm_plan_wait.
 * Example: wfmm_plan_evaluate_async_f64(p, u, NULL, WFMM_MEMORY_HOST); move_bodies(); wfmm_plan_wait(p);
 */
wfmm_status wfmm_plan_evaluate_async_f32(struct wfmm_plan *plan, float *velocity, float *gradient, int32_t memory);

/**
 * Starts the evaluation that wfmm_plan_evaluate_* makes, and returns at once. Its status is that of wfmm_plan_wait,
 * which must always be called; the fields are complete when it returns 0. Until then every other call with this plan
 * returns WFMM_ERR_BUSY, and velocity, gradient and borrowed device arrays must stay valid. In Fortran they must be
 * contiguous and have the attribute target or asynchronous: a temporary would be gone.
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
 * Sets the CUDA stream (cudaStream_t, CUstream) on which the caller computes this plan's device arrays: an
 * evaluation begins after the work that is queued on it when wfmm_plan_evaluate_* or wfmm_plan_evaluate_async_* is called
 * (cudaStreamPerThread: on that of the calling thread). NULL, the default: the default stream. The stream must outlive its
 * use by the plan. Without a GPU the call has no effect.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: wfmm_plan_set_stream(p, stream);
 */
wfmm_status wfmm_plan_set_stream(struct wfmm_plan *plan,
                                 void *stream);

/**
 * Page-locks the caller's memory at array, bytes long, so that results are copied from the device straight into it.
 * wfmm_session_unregister must be called before the memory is freed. Without a GPU the call has no effect.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, _HANDLE, _COUNT; WFMM_ERR_DRIVER where the driver refuses.
 * Example: wfmm_session_register(s, u, 3 * m * sizeof *u);
 */
wfmm_status wfmm_session_register(struct wfmm_session *session, void *array, int64_t bytes);

/**
 * Unlocks memory that wfmm_session_register has locked.
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

/**
 * Fills options with the defaults. size is sizeof *options.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
 * Example: wfmm_flow_options o; wfmm_flow_options_init(&o, sizeof o); o.integrator = WFMM_INTEGRATOR_AB2;
 */
wfmm_status wfmm_flow_options_init(struct wfmm_flow_options *options, size_t size);

/**
 * Makes a flow without elements at time 0. session may be NULL: a default session; plan_options are those of its sums,
 * options those of its motion; both may be NULL: defaults. The state is kept in double precision where the session computes
 * (on distributed sessions in host memory); precision and device of the sums are those of options and session. The
 * caller owns *out and ends it with wfmm_flow_destroy.
 * Thread rule: any thread; the flow itself serves one thread at a time.
 * Errors: WFMM_ERR_NULL, _HANDLE, _CONSTANT, _VALUE, _NOT_FINITE, _TOLERANCE, _TOO_NEW, _STRUCT_SIZE; WFMM_ERR_THREADS,
 * _HOST_MEMORY, _UNSUPPORTED; WFMM_ERR_FORKED where the session was made before fork().
 * Example: wfmm_flow *f = NULL; if (wfmm_flow_create(NULL, NULL, NULL, &f)) return 1;
 */
wfmm_status wfmm_flow_create(struct wfmm_session *session,
                             const struct wfmm_plan_options *plan_options,
                             const struct wfmm_flow_options *options,
                             struct wfmm_flow **out);

/**
 * Removes elements of a kind by identity; the others keep their order. Points that lose their last segment go too.
 * identity: [n], as wfmm_flow_get_* returns them; twice the same is fine.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _CONSTANT, _VALUE (no live element), _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_remove(f, WFMM_KIND_DUST, 1, &id, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_remove(struct wfmm_flow *flow, int32_t kind, int64_t n, const int64_t *identity, int32_t memory);

/**
 * Removes the elements of a kind that a mask names; the others keep their order. Points that lose their last segment go too.
 * mask: [n], one byte for each element in the order of wfmm_flow_get_* (of segments for filaments), 0: stays, all else:
 * removed. n: the number of elements that wfmm_flow_counts returns.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT (n),
 * _CONSTANT, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_remove_mask(f, WFMM_KIND_DUST, n, outside, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_remove_mask(struct wfmm_flow *flow,
                                  int32_t kind,
                                  int64_t n,
                                  const uint8_t *mask,
                                  int32_t memory);

/**
 * Sets the velocity far away, which is added everywhere; default 0. It acts from the next step on, also in what
 * WFMM_INTEGRATOR_AB2 takes along from the last one. velocity: [3], length/time, host memory.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _NOT_FINITE.
 * Example: const double wind[3] = {5, 0, 0}; wfmm_flow_set_free_stream(f, wind);
 */
wfmm_status wfmm_flow_set_free_stream(struct wfmm_flow *flow, const double *velocity);

/**
 * Sets a function of the host that adds its own velocity at all points of every evaluation; see wfmm_velocity_fn. A NULL
 * function removes it. It is called on the thread that calls the flow; calls of this flow from inside it return
 * WFMM_ERR_BUSY. After this call WFMM_INTEGRATOR_AB2 begins anew, but for calls after wfmm_flow_load and before a
 * step: this function counts as the one that the saved flow had.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: wfmm_flow_set_velocity_callback(f, add_gust, &gust);
 */
wfmm_status wfmm_flow_set_velocity_callback(struct wfmm_flow *flow,
                                            wfmm_velocity_fn callback,
                                            void *user);

/**
 * Moves everything by steps steps of dt each. A step that fails leaves the flow as it was before that step.
 * The steps before it are done; wfmm_flow_time has their number. dt > 0, time; steps >= 0.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _VALUE (dt), _COUNT (steps), _NOT_FINITE (dt, or
 * a state that leaves the range of numbers), _TOLERANCE; a callback's number from 1 to 199, else WFMM_ERR_CALLBACK; 100..199
 * where memory or a device is missing. WFMM_ERR_DEVICE_LOST: what the GPU held is gone, and the flow with it.
 * Example: if (wfmm_flow_advance(f, 0.01, 100)) return 1;
 */
wfmm_status wfmm_flow_advance(struct wfmm_flow *flow,
                              double dt,
                              int64_t steps);

/**
 * Returns the time of the flow and the number of steps. Each output may be NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY.
 * Example: double t; wfmm_flow_time(f, &t, NULL);
 */
wfmm_status wfmm_flow_time(const struct wfmm_flow *flow, double *time, int64_t *step);

/**
 * Returns the numbers of elements of a kind and of their points. Segments have end points; of other kinds both
 * numbers are equal. Each output may be NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT.
 * Example: int64_t n; wfmm_flow_counts(f, WFMM_KIND_DUST, &n, NULL);
 */
wfmm_status wfmm_flow_counts(const struct wfmm_flow *flow, int32_t kind, int64_t *elements, int64_t *points);

/**
 * Returns the point numbers of filaments or bound segments, which wfmm_flow_remove and splitting change. connectivity:
 * [capacity][2], counted from index_base of the plan options, in the order of the segments; points as
 * wfmm_flow_get_* returns their positions. Rows beyond the segments are not written.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (kind), _COUNT (capacity),
 * _MEMORY.
 * Example: wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, n, ends, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_get_connectivity(struct wfmm_flow *flow,
                                       int32_t kind,
                                       int64_t capacity,
                                       int32_t *connectivity,
                                       int32_t memory);

/**
 * Fills diagnostics with zeros and its size. size is sizeof *diagnostics.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
 * Example: wfmm_diagnostics d; wfmm_diagnostics_init(&d, sizeof d);
 */
wfmm_status wfmm_diagnostics_init(struct wfmm_diagnostics *diagnostics, size_t size);

/**
 * Computes invariants and norms of the present state, on a distributed session of all ranks' elements together: impulses,
 * energy, enstrophy, largest velocity. It takes one evaluation at all moving points unless their velocities are
 * known. Set diagnostics->struct_size before. What has no formula is NaN, and reason says why.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE, and those of an evaluation.
 * Example: wfmm_flow_diagnostics(f, &d); printf("%g\n", d.linear_impulse[2]);
 */
wfmm_status wfmm_flow_diagnostics(struct wfmm_flow *flow,
                                  struct wfmm_diagnostics *diagnostics);

/**
 * Writes the whole flow to a file, which wfmm_flow_load reads: an .npz container of NumPy's arrays, its members are in the
 * manual. A file of that name is replaced when the new one is whole. The velocity callback is not in it. path: NUL-terminated.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _FILE.
 * Example: wfmm_flow_save(f, "step-1000.npz");
 */
wfmm_status wfmm_flow_save(struct wfmm_flow *flow,
                           const char *path);

/**
 * Makes a flow from a file of wfmm_flow_save, with its options: wfmm_flow_get_options tells them, and index_base is that of
 * the program that saved it. session may be NULL: a default session. It continues from the saved state; the host sets a
 * velocity callback again. path: NUL-terminated.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, _HANDLE, _FILE (missing, cut short, damaged), _TOO_NEW (of a newer
 * library); those of wfmm_flow_create.
 * Example: wfmm_flow *f = NULL; if (wfmm_flow_load(NULL, "step-1000.npz", &f)) return 1;
 */
wfmm_status wfmm_flow_load(struct wfmm_session *session,
                           const char *path,
                           struct wfmm_flow **out);

/**
 * Fills in the options that a flow was made with, those of a loaded flow as the file has them. The caller sets struct_size of
 * each before; NULL: not wanted.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
 * Example: wfmm_plan_options o; o.struct_size = sizeof o; wfmm_flow_get_options(f, &o, NULL); printf("%d\n", o.index_base);
 */
wfmm_status wfmm_flow_get_options(const struct wfmm_flow *flow,
                                  struct wfmm_plan_options *plan_options,
                                  struct wfmm_flow_options *options);

/**
 * Fills a report of the last evaluation of the flow's sums, as wfmm_plan_report; host_bytes includes the
 * state.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _STRUCT_SIZE.
 * Example: wfmm_report r; r.struct_size = sizeof r; wfmm_flow_report(f, &r);
 */
wfmm_status wfmm_flow_report(const struct wfmm_flow *flow, struct wfmm_report *report);

/**
 * Ends a flow. *flow becomes NULL; a NULL flow is fine.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL (no address), WFMM_ERR_HANDLE, WFMM_ERR_BUSY.
 * Example: wfmm_flow_destroy(&f);
 */
wfmm_status wfmm_flow_destroy(struct wfmm_flow **flow);

/**
 * Sets the vortex particles, in place of those that were there; n = 0 removes them.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n] or NULL: core_radius of the plan
 * options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_particles_f32(struct wfmm_flow *flow,
                                        int64_t n,
                                        const float *position,
                                        const float *strength,
                                        const float *core_radius,
                                        int32_t memory);

/**
 * Sets the vortex particles, in place of those that were there; n = 0 removes them.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n] or NULL: core_radius of the plan
 * options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_particles_f64(struct wfmm_flow *flow,
                                        int64_t n,
                                        const double *position,
                                        const double *strength,
                                        const double *core_radius,
                                        int32_t memory);

/**
 * Appends vortex particles.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n] or NULL: core_radius of the plan
 * options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_particles_f32(struct wfmm_flow *flow,
                                        int64_t n,
                                        const float *position,
                                        const float *strength,
                                        const float *core_radius,
                                        int32_t memory);

/**
 * Appends vortex particles.
 * position: [n][3], length. strength: [n][3], length^3/time. core_radius: [n] or NULL: core_radius of the plan
 * options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_particles_f64(struct wfmm_flow *flow,
                                        int64_t n,
                                        const double *position,
                                        const double *strength,
                                        const double *core_radius,
                                        int32_t memory);

/**
 * Sets the vortex filaments: segments whose points move; n = 0 removes them.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2,
 * counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n], length, or NULL:
 * core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_filaments_f32(struct wfmm_flow *flow,
                                        int64_t n_points,
                                        const float *points,
                                        int64_t n,
                                        int64_t ld,
                                        const int32_t *connectivity,
                                        const float *circulation,
                                        const float *core_radius,
                                        int32_t memory);

/**
 * Sets the vortex filaments: segments whose points move; n = 0 removes them.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2,
 * counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n], length, or NULL:
 * core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_filaments_f64(struct wfmm_flow *flow,
                                        int64_t n_points,
                                        const double *points,
                                        int64_t n,
                                        int64_t ld,
                                        const int32_t *connectivity,
                                        const double *circulation,
                                        const double *core_radius,
                                        int32_t memory);

/**
 * Appends vortex filaments with points of their own.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2
 * among these points, counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n],
 * length, or NULL: core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_filaments_f32(struct wfmm_flow *flow,
                                        int64_t n_points,
                                        const float *points,
                                        int64_t n,
                                        int64_t ld,
                                        const int32_t *connectivity,
                                        const float *circulation,
                                        const float *core_radius,
                                        int32_t memory);

/**
 * Appends vortex filaments with points of their own.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2
 * among these points, counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n],
 * length, or NULL: core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_filaments_f64(struct wfmm_flow *flow,
                                        int64_t n_points,
                                        const double *points,
                                        int64_t n,
                                        int64_t ld,
                                        const int32_t *connectivity,
                                        const double *circulation,
                                        const double *core_radius,
                                        int32_t memory);

/**
 * Sets the segments that induce and do not move; n = 0 removes them.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2,
 * counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n], length, or NULL:
 * core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_bound_segments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_bound_segments_f32(struct wfmm_flow *flow,
                                             int64_t n_points,
                                             const float *points,
                                             int64_t n,
                                             int64_t ld,
                                             const int32_t *connectivity,
                                             const float *circulation,
                                             const float *core_radius,
                                             int32_t memory);

/**
 * Sets the segments that induce and do not move; n = 0 removes them.
 * points: [n_points][3], length. connectivity: [n][ld], ld >= 2; the first two numbers of a row are the points P1, P2,
 * counted from index_base of the plan options. circulation: [n], length^2/time. core_radius: [n], length, or NULL:
 * core_radius of the plan options.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
 * _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_bound_segments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_bound_segments_f64(struct wfmm_flow *flow,
                                             int64_t n_points,
                                             const double *points,
                                             int64_t n,
                                             int64_t ld,
                                             const int32_t *connectivity,
                                             const double *circulation,
                                             const double *core_radius,
                                             int32_t memory);

/**
 * Sets the points that move with the fluid; n = 0 removes them.
 * position: [n][3], length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
 * _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_tracers_f64(f, n, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_tracers_f32(struct wfmm_flow *flow, int64_t n, const float *position, int32_t memory);

/**
 * Sets the points that move with the fluid; n = 0 removes them.
 * position: [n][3], length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
 * _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_set_tracers_f64(f, n, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_tracers_f64(struct wfmm_flow *flow, int64_t n, const double *position, int32_t memory);

/**
 * Appends points that move with the fluid.
 * position: [n][3], length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
 * _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_tracers_f64(f, n, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_tracers_f32(struct wfmm_flow *flow, int64_t n, const float *position, int32_t memory);

/**
 * Appends points that move with the fluid.
 * position: [n][3], length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
 * _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
 * Example: wfmm_flow_add_tracers_f64(f, n, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_tracers_f64(struct wfmm_flow *flow, int64_t n, const double *position, int32_t memory);

/**
 * Sets the dust: parcels with inertia; n = 0 removes it.
 * position: [n][3], length. velocity: [n][3], length/time, or NULL: at rest. diameter: [n], length, > 0. density:
 * [n], mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
 * _STATE (fluid_viscosity of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
 * _HOST_MEMORY.
 * Example: wfmm_flow_set_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_dust_f32(struct wfmm_flow *flow,
                                   int64_t n,
                                   const float *position,
                                   const float *velocity,
                                   const float *diameter,
                                   const float *density,
                                   int32_t memory);

/**
 * Sets the dust: parcels with inertia; n = 0 removes it.
 * position: [n][3], length. velocity: [n][3], length/time, or NULL: at rest. diameter: [n], length, > 0. density:
 * [n], mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
 * _STATE (fluid_viscosity of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
 * _HOST_MEMORY.
 * Example: wfmm_flow_set_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_set_dust_f64(struct wfmm_flow *flow,
                                   int64_t n,
                                   const double *position,
                                   const double *velocity,
                                   const double *diameter,
                                   const double *density,
                                   int32_t memory);

/**
 * Appends dust: parcels with inertia.
 * position: [n][3], length. velocity: [n][3], length/time, or NULL: at rest. diameter: [n], length, > 0. density:
 * [n], mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
 * _STATE (fluid_viscosity of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
 * _HOST_MEMORY.
 * Example: wfmm_flow_add_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_dust_f32(struct wfmm_flow *flow,
                                   int64_t n,
                                   const float *position,
                                   const float *velocity,
                                   const float *diameter,
                                   const float *density,
                                   int32_t memory);

/**
 * Appends dust: parcels with inertia.
 * position: [n][3], length. velocity: [n][3], length/time, or NULL: at rest. diameter: [n], length, > 0. density:
 * [n], mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
 * Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
 * _STATE (fluid_viscosity of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
 * _HOST_MEMORY.
 * Example: wfmm_flow_add_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_add_dust_f64(struct wfmm_flow *flow,
                                   int64_t n,
                                   const double *position,
                                   const double *velocity,
                                   const double *diameter,
                                   const double *density,
                                   int32_t memory);

/**
 * Returns a quantity of all elements of a kind, and their identities.
 * quantity: WFMM_QUANTITY_*; position, strength and velocity are [capacity][3], others [capacity]. Positions and velocities
 * of filaments and bound segments have a row a point, all else a row an element; wfmm_flow_counts tells how many. identity:
 * [capacity], of these rows, or NULL. Rows beyond them are not written. Velocities are the fluid's at the present time (one
 * evaluation), of dust its own.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity), _COUNT
 * (capacity), _MEMORY; those of an evaluation.
 * Example: wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, n, x, id, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_get_f32(struct wfmm_flow *flow,
                              int32_t kind,
                              int32_t quantity,
                              int64_t capacity,
                              float *values,
                              int64_t *identity,
                              int32_t memory);

/**
 * Returns a quantity of all elements of a kind, and their identities.
 * quantity: WFMM_QUANTITY_*; position, strength and velocity are [capacity][3], others [capacity]. Positions and velocities
 * of filaments and bound segments have a row a point, all else a row an element; wfmm_flow_counts tells how many. identity:
 * [capacity], of these rows, or NULL. Rows beyond them are not written. Velocities are the fluid's at the present time (one
 * evaluation), of dust its own.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity), _COUNT
 * (capacity), _MEMORY; those of an evaluation.
 * Example: wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, n, x, id, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_get_f64(struct wfmm_flow *flow,
                              int32_t kind,
                              int32_t quantity,
                              int64_t capacity,
                              double *values,
                              int64_t *identity,
                              int32_t memory);

/**
 * Returns a quantity of the elements of a kind with these identities.
 * quantity, and which of them have a row a point: as wfmm_flow_get_*. identity: [n], of elements or, for those, of points, in
 * any order. values: [n][3] or [n], row k of identity[k].
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity, no live element),
 * _COUNT, _MEMORY, _HOST_MEMORY; those of an evaluation.
 * Example: wfmm_flow_get_selected_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 2, id, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_get_selected_f32(struct wfmm_flow *flow,
                                       int32_t kind,
                                       int32_t quantity,
                                       int64_t n,
                                       const int64_t *identity,
                                       float *values,
                                       int32_t memory);

/**
 * Returns a quantity of the elements of a kind with these identities.
 * quantity, and which of them have a row a point: as wfmm_flow_get_*. identity: [n], of elements or, for those, of points, in
 * any order. values: [n][3] or [n], row k of identity[k].
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity, no live element),
 * _COUNT, _MEMORY, _HOST_MEMORY; those of an evaluation.
 * Example: wfmm_flow_get_selected_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 2, id, x, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_get_selected_f64(struct wfmm_flow *flow,
                                       int32_t kind,
                                       int32_t quantity,
                                       int64_t n,
                                       const int64_t *identity,
                                       double *values,
                                       int32_t memory);

/**
 * Computes the velocity of the fluid at any points at the present time.
 * It is what vortex elements induce, the free stream and what the callback adds. target: [n_targets][3], length. velocity:
 * [n_targets][3], length/time. gradient: [n_targets][3][3] of the induced part alone, 1/time, g[k][i][j] = du_i/dx_j, or
 * NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE,
 * _OVERLAP, _MEMORY, _TOLERANCE; a callback's number; 100..199.
 * Example: wfmm_flow_velocity_f64(f, m, x, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_velocity_f32(struct wfmm_flow *flow,
                                   int64_t n_targets,
                                   const float *target,
                                   float *velocity,
                                   float *gradient,
                                   int32_t memory);

/**
 * Computes the velocity of the fluid at any points at the present time.
 * It is what vortex elements induce, the free stream and what the callback adds. target: [n_targets][3], length. velocity:
 * [n_targets][3], length/time. gradient: [n_targets][3][3] of the induced part alone, 1/time, g[k][i][j] = du_i/dx_j, or
 * NULL.
 * Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE,
 * _OVERLAP, _MEMORY, _TOLERANCE; a callback's number; 100..199.
 * Example: wfmm_flow_velocity_f64(f, m, x, u, NULL, WFMM_MEMORY_HOST);
 */
wfmm_status wfmm_flow_velocity_f64(struct wfmm_flow *flow,
                                   int64_t n_targets,
                                   const double *target,
                                   double *velocity,
                                   double *gradient,
                                   int32_t memory);

/**
 * Fills camera with the defaults. size is sizeof *camera.
 * Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
 * Example: wfmm_camera c; wfmm_camera_init(&c, sizeof c); c.color = WFMM_COLOR_SPEED;
 */
wfmm_status wfmm_camera_init(struct wfmm_camera *camera, size_t size);

/**
 * Draws the flow as a camera sees it: segments as lines that hide what is behind them, tracers, dust and particles
 * as points, whose number gives the opacity. camera may be NULL: defaults, which show everything from the side.
 * width, height: in pixels, 1 to 32768. rgba: [height][width][4], rows from the top, host memory; png_path:
 * NUL-terminated name of a PNG file to write, replaced when the new one is whole. One of both may be NULL. On a distributed
 * session every rank calls it with the same camera and gets the picture of all ranks' elements.
 * Thread rule: one thread at a time. Errors, which write nothing: WFMM_ERR_NULL (both outputs), _HANDLE, _BUSY,
 * _VALUE (width, height, camera), _CONSTANT, _NOT_FINITE, _STRUCT_SIZE, _TOO_NEW, _FILE; WFMM_ERR_HOST_MEMORY, _DEVICE_MEMORY,
 * _DEVICE_LOST; with WFMM_COLOR_SPEED those of an evaluation.
 * Example: wfmm_flow_picture(f, NULL, 1280, 720, NULL, "wake.png");
 */
wfmm_status wfmm_flow_picture(struct wfmm_flow *flow,
                              const struct wfmm_camera *camera,
                              int32_t width,
                              int32_t height,
                              uint8_t *rgba,
                              const char *png_path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WAKEFMM_H */
