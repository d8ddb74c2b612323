!> libwakefmm for Fortran: Biot-Savart sums of vortex segments and particles, and potentials of charges, by a fast
!> multipole method. Generated from the Rust sources by `make generate`; do not edit.
!>
!> The sums. x: target; s: normalization, default 1/(4 pi); c: core radius; S and F: at WFMM_REG_*; right-hand rule.
!>   Particles at X with strength a, r = |x-X|:
!>     u = s sum S(r) cross(a, x-X)
!>   Segments P1 -> P2 with circulation G, r1 = x-P1, r2 = x-P2, C = cross(r1, r2), D = |r1||r2| (|r1||r2| + dot(r1, r2)),
!>   rho = |C|/|P2-P1| the distance to the line:
!>     u = s sum G F (|r1|+|r2|)/D C
!>   Charges q at X:
!>     phi = s sum q/|x-X|, its gradient d phi/dx_j (minus the field of a charge)
!> r = 0, C = 0 and P1 = P2 contribute zero, to gradients too. Units are the caller's.
!>
!> Twenty lines of use. The kind of the arrays, real(4) or real(8) (c_float or c_double), selects the precision:
!>
!>   use wakefmm
!>   type(wfmm_plan) :: plan
!>   type(wfmm_plan_options) :: options           ! every component has its default; index_base = 1
!>   real(8) :: points(3, np), circulation(n), core(n), x(3, m), u(3, m)
!>   integer :: ends(2, n)                        ! numbers of first and last point, counted from 1
!>   options%tolerance = 1d-5
!>   call wfmm_plan_create(plan, options=options)
!>   do step = 1, steps
!>     call wfmm_plan_set_segments(plan, points, ends, circulation, core_radius=core)
!>     call wfmm_plan_set_targets(plan, x)
!>     call wfmm_plan_evaluate(plan, u)           ! u(:, k): velocity at x(:, k)
!>   end do
!>   call wfmm_plan_destroy(plan)
!>
!> Arrays are (3, n): a column is a point or a vector. Counts are taken from the shapes, which must agree: arrays of one set
!> have the same last extent. Give the count where arrays are longer than what they hold: n=, n_points=, n_targets=, default
!> integers. Their tails are never read. Outputs may be longer than what is written. Counts that come out
!> (wfmm_plan_counts, wfmm_flow_counts) are integer(c_int64_t), whose kind has room for any.
!> gradient(j, i, k) = du_i/dx_j at target k (the transpose of C's g[k][i][j], in Fortran's order of storage); for
!> the potential gradient(:, k).
!> With ierr= a call returns a status, WFMM_OK = 0 or WFMM_ERR_*, and wfmm_last_error() says what was wrong. Without
!> ierr= an error prints the message and stops the program with code 1, or calls the procedure of wfmm_error_handler_set.
!> Point numbers are of 32 or 64 bits. A code compiled with -fdefault-integer-8 compiles this file with that flag too.
!> The set calls copy host arrays, so temporaries and array sections may be passed.
!> New strengths, same positions: wfmm_plan_set_circulation(plan, circulation(:)), wfmm_plan_set_strength(plan, strength(:,:)),
!> wfmm_plan_set_charge(plan, charge(:)). The generic wfmm_plan_set_strengths takes the first two only: a one-dimensional
!> array is a circulation, never a charge.
!> The arrays of wfmm_plan_evaluate_async must be contiguous (else WFMM_ERR_SHAPE) and be target or asynchronous where they
!> are declared, and stay until wfmm_plan_wait.
!> A session that is handed over must exist: one that was not made, or was destroyed, is WFMM_ERR_HANDLE, never the default.
!> The seconds of a report are indexed by WFMM_PASS_*: report%seconds(WFMM_PASS_TREE).
!> A plan serves one thread at a time; threads may have a plan each.
!> Elements that move: type(wfmm_flow), wfmm_flow_create, wfmm_flow_set_*, wfmm_flow_advance(flow, dt, steps), wfmm_flow_get. The
!> values of wfmm_flow_get are (3, n) for positions, strengths and velocities, (n) for all else. A velocity callback is a
!> bind(c) function of (time, n, position, velocity, memory, stream, user), all by value except the two arrays (3, n):
!> call wfmm_flow_set_velocity_callback(flow, c_funloc(gust)).
module wakefmm
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  public :: wfmm_abi_version, wfmm_status_name, wfmm_last_error, WFMM_MODULE_ABI_VERSION
  public :: wfmm_error_handler, wfmm_error_handler_set, wfmm_finish
  public :: wfmm_session_options
  public :: wfmm_plan_options
  public :: wfmm_report
  public :: wfmm_flow_options
  public :: wfmm_diagnostics
  public :: wfmm_camera
  public :: wfmm_session
  public :: wfmm_plan
  public :: wfmm_flow
  public :: wfmm_communicator
  public :: wfmm_camera_init
  public :: wfmm_diagnostics_init
  public :: wfmm_flow_add_dust
  public :: wfmm_flow_add_filaments
  public :: wfmm_flow_add_particles
  public :: wfmm_flow_add_tracers
  public :: wfmm_flow_advance
  public :: wfmm_flow_counts
  public :: wfmm_flow_create
  public :: wfmm_flow_destroy
  public :: wfmm_flow_diagnostics
  public :: wfmm_flow_get
  public :: wfmm_flow_get_connectivity
  public :: wfmm_flow_get_options
  public :: wfmm_flow_get_selected
  public :: wfmm_flow_load
  public :: wfmm_flow_options_init
  public :: wfmm_flow_picture
  public :: wfmm_flow_remove
  public :: wfmm_flow_remove_mask
  public :: wfmm_flow_report
  public :: wfmm_flow_save
  public :: wfmm_flow_set_bound_segments
  public :: wfmm_flow_set_dust
  public :: wfmm_flow_set_filaments
  public :: wfmm_flow_set_free_stream
  public :: wfmm_flow_set_particles
  public :: wfmm_flow_set_tracers
  public :: wfmm_flow_set_velocity_callback
  public :: wfmm_flow_time
  public :: wfmm_flow_velocity
  public :: wfmm_induce_particles
  public :: wfmm_induce_segments
  public :: wfmm_log_set
  public :: wfmm_plan_check
  public :: wfmm_plan_counts
  public :: wfmm_plan_create
  public :: wfmm_plan_destroy
  public :: wfmm_plan_evaluate
  public :: wfmm_plan_evaluate_async
  public :: wfmm_plan_evaluate_potential
  public :: wfmm_plan_options_init
  public :: wfmm_plan_prepare
  public :: wfmm_plan_recipe
  public :: wfmm_plan_report
  public :: wfmm_plan_set_charge
  public :: wfmm_plan_set_charges
  public :: wfmm_plan_set_circulation
  public :: wfmm_plan_set_particles
  public :: wfmm_plan_set_segments
  public :: wfmm_plan_set_stream
  public :: wfmm_plan_set_strength
  public :: wfmm_plan_set_strengths
  public :: wfmm_plan_set_targets
  public :: wfmm_plan_wait
  public :: wfmm_plan_workspace
  public :: wfmm_session_create
  public :: wfmm_session_create_distributed
  public :: wfmm_session_describe
  public :: wfmm_session_destroy
  public :: wfmm_session_options_init
  public :: wfmm_session_register
  public :: wfmm_session_unregister
  public :: wfmm_version
  public :: WFMM_OK
  public :: WFMM_ERR_NULL
  public :: WFMM_ERR_HANDLE
  public :: WFMM_ERR_COUNT
  public :: WFMM_ERR_CONSTANT
  public :: WFMM_ERR_VALUE
  public :: WFMM_ERR_NOT_FINITE
  public :: WFMM_ERR_INDEX
  public :: WFMM_ERR_STATE
  public :: WFMM_ERR_BUSY
  public :: WFMM_ERR_TOO_NEW
  public :: WFMM_ERR_STRUCT_SIZE
  public :: WFMM_ERR_TOLERANCE
  public :: WFMM_ERR_OVERLAP
  public :: WFMM_ERR_MEMORY
  public :: WFMM_ERR_SHAPE
  public :: WFMM_ERR_CALLBACK
  public :: WFMM_ERR_FILE
  public :: WFMM_ERR_NO_DEVICE
  public :: WFMM_ERR_HOST_MEMORY
  public :: WFMM_ERR_DEVICE_MEMORY
  public :: WFMM_ERR_THREADS
  public :: WFMM_ERR_DRIVER
  public :: WFMM_ERR_UNSUPPORTED
  public :: WFMM_ERR_COMMUNICATION
  public :: WFMM_ERR_INTERNAL
  public :: WFMM_ERR_UNUSABLE
  public :: WFMM_ERR_DEVICE_LOST
  public :: WFMM_ERR_FORKED
  public :: WFMM_ERR_OUT_OF_MEMORY
  public :: WFMM_REG_NONE
  public :: WFMM_REG_RANKINE
  public :: WFMM_REG_LAMB_OSEEN
  public :: WFMM_REG_VATISTAS
  public :: WFMM_REG_SCULLY
  public :: WFMM_REG_OFFSET
  public :: WFMM_REG_GAUSS_ERF
  public :: WFMM_REG_EXPONENTIAL
  public :: WFMM_REG_COMPACT
  public :: WFMM_REG_ROSENHEAD
  public :: WFMM_REG_WINCKELMANS
  public :: WFMM_REG_POLYNOMIAL
  public :: WFMM_METHOD_AUTO
  public :: WFMM_METHOD_DIRECT
  public :: WFMM_METHOD_FMM
  public :: WFMM_METHOD_TREECODE
  public :: WFMM_EXPANSION_HARMONICS
  public :: WFMM_EXPANSION_PSEUDO_PARTICLES
  public :: WFMM_PRECISION_ARRAYS
  public :: WFMM_PRECISION_F32
  public :: WFMM_PRECISION_F64
  public :: WFMM_BACKEND_AUTO
  public :: WFMM_BACKEND_CPU
  public :: WFMM_BACKEND_CUDA
  public :: WFMM_MEMORY_HOST
  public :: WFMM_MEMORY_DEVICE
  public :: WFMM_MEMORY_AUTO
  public :: WFMM_LOG_OFF
  public :: WFMM_LOG_ERROR
  public :: WFMM_LOG_WARN
  public :: WFMM_LOG_INFO
  public :: WFMM_LOG_DEBUG
  public :: WFMM_FLAG_ACCUMULATE
  public :: WFMM_FLAG_REPRODUCIBLE
  public :: WFMM_FLAG_HOST_PARTITION
  public :: WFMM_TOLERANCE_MIN_F32
  public :: WFMM_TOLERANCE_MIN_F64
  public :: WFMM_ORDER_MAX
  public :: WFMM_PASS_TRANSFER
  public :: WFMM_PASS_TREE
  public :: WFMM_PASS_LISTS
  public :: WFMM_PASS_P2M
  public :: WFMM_PASS_M2M
  public :: WFMM_PASS_M2L
  public :: WFMM_PASS_L2L
  public :: WFMM_PASS_L2P
  public :: WFMM_PASS_P2P
  public :: WFMM_PASS_TOTAL
  public :: WFMM_PASS_M2P
  public :: WFMM_PASS_COUNT
  public :: WFMM_KIND_PARTICLES
  public :: WFMM_KIND_FILAMENTS
  public :: WFMM_KIND_BOUND_SEGMENTS
  public :: WFMM_KIND_TRACERS
  public :: WFMM_KIND_DUST
  public :: WFMM_QUANTITY_POSITION
  public :: WFMM_QUANTITY_STRENGTH
  public :: WFMM_QUANTITY_CORE_RADIUS
  public :: WFMM_QUANTITY_VELOCITY
  public :: WFMM_QUANTITY_CIRCULATION
  public :: WFMM_QUANTITY_DIAMETER
  public :: WFMM_QUANTITY_DENSITY
  public :: WFMM_INTEGRATOR_EULER
  public :: WFMM_INTEGRATOR_AB2
  public :: WFMM_INTEGRATOR_RK3
  public :: WFMM_INTEGRATOR_RK4
  public :: WFMM_STRETCHING_NONE
  public :: WFMM_STRETCHING_CLASSICAL
  public :: WFMM_STRETCHING_TRANSPOSE
  public :: WFMM_STRETCHING_MIXED
  public :: WFMM_SPREADING_NONE
  public :: WFMM_SPREADING_CORES
  public :: WFMM_REASON_KNOWN
  public :: WFMM_REASON_KERNEL
  public :: WFMM_REASON_SEGMENTS
  public :: WFMM_REASON_TOO_MANY
  public :: WFMM_REASON_SINGULAR
  public :: WFMM_REASON_PERIODIC
  public :: WFMM_PROJECTION_PERSPECTIVE
  public :: WFMM_PROJECTION_ORTHOGRAPHIC
  public :: WFMM_COLOR_KIND
  public :: WFMM_COLOR_SPEED
  public :: WFMM_COLOR_AGE
  public :: WFMM_COLOR_DENSITY
  public :: WFMM_BLENDING_OPACITY
  public :: WFMM_BLENDING_ADDITIVE
  public :: WFMM_VERSION_MAJOR
  public :: WFMM_VERSION_MINOR
  public :: WFMM_VERSION_PATCH

  !> What a function of the C API returns. 1..=99: the caller's error, nothing changed; 100..=199: a resource is missing,
  !> may be retried; negative: the object is unusable, only destroy is allowed. Numbers are never reused.
  !> Success.
  integer, parameter :: WFMM_OK = 0
  !> A pointer is NULL where an array or an output is needed.
  integer, parameter :: WFMM_ERR_NULL = 1
  !> A handle that is not, or no longer, a live session, plan or flow.
  integer, parameter :: WFMM_ERR_HANDLE = 2
  !> A count or size that is negative, too large or not the expected one.
  integer, parameter :: WFMM_ERR_COUNT = 3
  !> A number that is not a constant of this enumeration, or a flag that does not exist.
  integer, parameter :: WFMM_ERR_CONSTANT = 4
  !> A number outside of its range.
  integer, parameter :: WFMM_ERR_VALUE = 5
  !> NaN or infinity.
  integer, parameter :: WFMM_ERR_NOT_FINITE = 6
  !> A point number outside index_base .. index_base+n_points-1.
  integer, parameter :: WFMM_ERR_INDEX = 7
  !> Called too early: sources or targets have not been set, or dust was given to a flow without fluid_viscosity.
  integer, parameter :: WFMM_ERR_STATE = 8
  !> Another thread is using this plan or flow.
  integer, parameter :: WFMM_ERR_BUSY = 9
  !> An option struct is newer than this library and uses what it does not know.
  integer, parameter :: WFMM_ERR_TOO_NEW = 10
  !> struct_size is not that of an initialized struct.
  integer, parameter :: WFMM_ERR_STRUCT_SIZE = 11
  !> A tolerance below what the computing precision can give.
  integer, parameter :: WFMM_ERR_TOLERANCE = 12
  !> Output arrays overlap.
  integer, parameter :: WFMM_ERR_OVERLAP = 13
  !> Arrays are not where memory says, or are where this session cannot reach them.
  integer, parameter :: WFMM_ERR_MEMORY = 14
  !> An array of Fortran or C++ is smaller than the count it goes with.
  integer, parameter :: WFMM_ERR_SHAPE = 15
  !> The host's velocity callback of a flow returned a number that is not a status from 1 to 199; the step was
  !> stopped.
  integer, parameter :: WFMM_ERR_CALLBACK = 16
  !> A file that cannot be read or written, or is not a complete checkpoint of a flow.
  integer, parameter :: WFMM_ERR_FILE = 17
  !> There is a driver, but no usable GPU, or no GPU with the requested number.
  integer, parameter :: WFMM_ERR_NO_DEVICE = 100
  !> Out of host memory.
  integer, parameter :: WFMM_ERR_HOST_MEMORY = 101
  !> Out of device memory.
  integer, parameter :: WFMM_ERR_DEVICE_MEMORY = 102
  !> Threads could not be started.
  integer, parameter :: WFMM_ERR_THREADS = 103
  !> The driver is missing, too old, or refused.
  integer, parameter :: WFMM_ERR_DRIVER = 104
  !> Not implemented: the message says what, and what to use instead.
  integer, parameter :: WFMM_ERR_UNSUPPORTED = 105
  !> A function of the communicator failed: other ranks may be gone.
  integer, parameter :: WFMM_ERR_COMMUNICATION = 106
  !> An internal error was stopped at the boundary.
  integer, parameter :: WFMM_ERR_INTERNAL = -1
  !> An earlier failure left the object unusable.
  integer, parameter :: WFMM_ERR_UNUSABLE = -2
  !> The device was lost; after a fault in a kernel this process cannot use that GPU any more.
  integer, parameter :: WFMM_ERR_DEVICE_LOST = -3
  !> The object was made before fork(); the child must make its own.
  integer, parameter :: WFMM_ERR_FORKED = -4
  !> Host memory ran out inside a computation; the plan is unusable, the next one may find more.
  integer, parameter :: WFMM_ERR_OUT_OF_MEMORY = -5
  !> How a core regularizes its element: _RANKINE to _OFFSET for segments, _GAUSS_ERF to _POLYNOMIAL for particles,
  !> _NONE for both. A radius of 0 means the singular kernel for that element. Full references: docs/theory.md.
  !> Singular kernel. Segments: F = 1. Particles: S = 1/r^3.
  integer, parameter :: WFMM_REG_NONE = 0
  !> Segments: F = min(1, rho^2/c^2).
  integer, parameter :: WFMM_REG_RANKINE = 1
  !> Segments: F = 1 - exp(-1.25643 rho^2/c^2); the velocity of a long segment is largest at rho = c.
  integer, parameter :: WFMM_REG_LAMB_OSEEN = 2
  !> Segments: F = rho^2/sqrt(c^4 + rho^4) (Vatistas et al. 1991, n = 2); the default of segments.
  integer, parameter :: WFMM_REG_VATISTAS = 3
  !> Segments: F = rho^2/(c^2 + rho^2) (Scully 1975; Vatistas et al. 1991, n = 1).
  integer, parameter :: WFMM_REG_SCULLY = 4
  !> Segments: F = 1, and D + c^2 |P2-P1|^2 in place of D (van Garrel 2003).
  integer, parameter :: WFMM_REG_OFFSET = 5
  !> Particles: S = (erf(q/sqrt 2) - sqrt(2/pi) q exp(-q^2/2))/r^3, q = r/c (Winckelmans and Leonard 1993); the default of
  !> particles.
  integer, parameter :: WFMM_REG_GAUSS_ERF = 6
  !> Particles: S = (1 - exp(-r^3/c^3))/r^3 (OpenFAST's OLAF).
  integer, parameter :: WFMM_REG_EXPONENTIAL = 7
  !> Particles: S = 1/sqrt(r^6 + c^6) (OpenFAST's OLAF).
  integer, parameter :: WFMM_REG_COMPACT = 8
  !> Particles: S = (r^2 + c^2)^(-3/2) (Rosenhead 1930).
  integer, parameter :: WFMM_REG_ROSENHEAD = 9
  !> Particles: S = (r^2 + 5/2 c^2)(r^2 + c^2)^(-5/2) (Winckelmans and Leonard 1993).
  integer, parameter :: WFMM_REG_WINCKELMANS = 10
  !> Particles: S = K/r^3, K = (r/c)^2 for r <= c, else 1 (Hu et al. 2013, eq. 29).
  integer, parameter :: WFMM_REG_POLYNOMIAL = 11
  !> How the sums are computed.
  !> Direct sum, fast multipole method or treecode, whichever the cost model expects to be fastest. On a GPU
  !> it does not consider the treecode.
  integer, parameter :: WFMM_METHOD_AUTO = 0
  !> Every pair.
  integer, parameter :: WFMM_METHOD_DIRECT = 1
  !> The fast multipole method. A GPU sums directly what has no FMM there: WFMM_REG_OFFSET, and tolerances that
  !> its orders do not reach. method of the report has what was done.
  integer, parameter :: WFMM_METHOD_FMM = 2
  !> Multipoles evaluated at the targets, without local expansions. A GPU sums directly what has no FMM there.
  !> WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with a period.
  integer, parameter :: WFMM_METHOD_TREECODE = 3
  !> What the far field is expanded in.
  !> Solid harmonics.
  integer, parameter :: WFMM_EXPANSION_HARMONICS = 0
  !> Strengths of particles on a sphere around each cell. Slower than harmonics; for comparison. By the FMM, with
  !> orders up to 16 (in single precision on a GPU 11). WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with
  !> the treecode or a period, and by evaluate where the tolerance is missed.
  integer, parameter :: WFMM_EXPANSION_PSEUDO_PARTICLES = 1
  !> Precision of the computation.
  !> That of the arrays: double if one of the arrays is double, else single, but double at tolerances below 1e-4 on a CPU
  !> (unless an FMM or treecode sums velocities of particles alone). An FMM of double arrays (on the CPU also a
  !> treecode) computes velocities in single precision where that keeps the tolerance (1e-4 or more, of particles
  !> alone and on a GPU 1e-6 or more) and is faster, unless WFMM_FLAG_REPRODUCIBLE is set; precision of the report says so.
  integer, parameter :: WFMM_PRECISION_ARRAYS = 0
  !> Single. Where its range or digits are not enough (a point far away, cores much larger than the extent of the
  !> elements, on a CPU a tolerance below 1e-4, unless an FMM or treecode sums velocities of particles alone) the computation
  !> is done in double. A warning and precision of the report say so.
  integer, parameter :: WFMM_PRECISION_F32 = 1
  !> Double.
  integer, parameter :: WFMM_PRECISION_F64 = 2
  !> Where the sums are computed.
  !> A CUDA device where there is one and the problem has at least 200,000 pairs or arrays in device memory, else the CPU.
  integer, parameter :: WFMM_BACKEND_AUTO = 0
  !> The CPU.
  integer, parameter :: WFMM_BACKEND_CPU = 1
  !> A CUDA device; an error where there is none.
  integer, parameter :: WFMM_BACKEND_CUDA = 2
  !> Where the arrays of a call are.
  !> Host memory: inputs are copied.
  integer, parameter :: WFMM_MEMORY_HOST = 0
  !> Device memory: a plan borrows inputs until the next set_* or destroy; a flow copies them.
  integer, parameter :: WFMM_MEMORY_DEVICE = 1
  !> The driver is asked; without a device: host.
  integer, parameter :: WFMM_MEMORY_AUTO = 2
  !> How much is logged.
  !> Nothing.
  integer, parameter :: WFMM_LOG_OFF = 0
  !> Errors.
  integer, parameter :: WFMM_LOG_ERROR = 1
  !> Errors and fallbacks. A fallback is a computation in another way than requested, for example on the CPU or
  !> in double precision.
  integer, parameter :: WFMM_LOG_WARN = 2
  !> The above, and one line per plan with its recipe and the seconds of each pass.
  integer, parameter :: WFMM_LOG_INFO = 3
  !> The above, and details.
  integer, parameter :: WFMM_LOG_DEBUG = 4
  !> flags of a plan: results are added to the output arrays instead of overwriting them.
  integer(c_int64_t), parameter :: WFMM_FLAG_ACCUMULATE = 1_c_int64_t
  !> flags of a plan: the same inputs give the same bits, whatever the number of threads, the load of the machine and
  !> what the plan or the process did before. This holds for one instruction set and one model of GPU. On a distributed session
  !> on CPUs fields agree to rounding whatever the number of ranks; by expansions each rank then holds all sources and targets.
  integer(c_int64_t), parameter :: WFMM_FLAG_REPRODUCIBLE = 2_c_int64_t
  !> flags of a plan on a distributed session: each rank computes with its own sources and targets, as the host has
  !> divided them. Without the flag they are divided anew, by the work of the evaluation before. No effect on other
  !> sessions, nor with WFMM_FLAG_REPRODUCIBLE on CPUs.
  integer(c_int64_t), parameter :: WFMM_FLAG_HOST_PARTITION = 4_c_int64_t
  !> The smallest tolerance that single precision is promised to hold.
  real(c_double), parameter :: WFMM_TOLERANCE_MIN_F32 = 5e-6_c_double
  !> The smallest tolerance that double precision is promised to hold.
  real(c_double), parameter :: WFMM_TOLERANCE_MIN_F64 = 5e-12_c_double
  !> The highest order of expansions that may be requested.
  integer, parameter :: WFMM_ORDER_MAX = 40
  !> The passes, in the order of the data; seconds of a report are indexed by them.
  !> Copies between host and device.
  integer, parameter :: WFMM_PASS_TRANSFER = 0
  !> Keys, sorting, cells.
  integer, parameter :: WFMM_PASS_TREE = 1
  !> Near, far and core lists.
  integer, parameter :: WFMM_PASS_LISTS = 2
  !> Sources to multipoles.
  integer, parameter :: WFMM_PASS_P2M = 3
  !> Multipoles of children to those of parents.
  integer, parameter :: WFMM_PASS_M2M = 4
  !> Multipoles to local expansions.
  integer, parameter :: WFMM_PASS_M2L = 5
  !> Local expansions of parents to those of children.
  integer, parameter :: WFMM_PASS_L2L = 6
  !> Local expansions to targets.
  integer, parameter :: WFMM_PASS_L2P = 7
  !> Near pairs and core corrections, element by element; all pairs where the method is direct.
  integer, parameter :: WFMM_PASS_P2P = 8
  !> The whole call.
  integer, parameter :: WFMM_PASS_TOTAL = 9
  !> Multipoles to targets: the treecode.
  integer, parameter :: WFMM_PASS_M2P = 11
  !> Length of seconds in a report; entries without a WFMM_PASS_* name are 0.
  integer, parameter :: WFMM_PASS_COUNT = 16
  !> Elements of a flow.
  !> Vortex particles: position, strength, core radius.
  integer, parameter :: WFMM_KIND_PARTICLES = 0
  !> Vortex filaments: segments whose points move; the circulation is kept.
  integer, parameter :: WFMM_KIND_FILAMENTS = 1
  !> Segments that induce and do not move: the host sets them again.
  integer, parameter :: WFMM_KIND_BOUND_SEGMENTS = 2
  !> Points that move with the fluid.
  integer, parameter :: WFMM_KIND_TRACERS = 3
  !> Inertial parcels: drag, gravity, buoyancy, ground contact.
  integer, parameter :: WFMM_KIND_DUST = 4
  !> What wfmm_flow_get_* returns.
  !> Three numbers a row, length: of a particle, tracer, parcel, or point of filaments or bound segments.
  integer, parameter :: WFMM_QUANTITY_POSITION = 0
  !> Three numbers a row: strength of particles, length^3/time.
  integer, parameter :: WFMM_QUANTITY_STRENGTH = 1
  !> One number a row: core radius of particles and segments, length.
  integer, parameter :: WFMM_QUANTITY_CORE_RADIUS = 2
  !> Three numbers a row, length/time, in the order of the positions: the velocity of the fluid at the present time; for dust
  !> the velocity of the parcel.
  integer, parameter :: WFMM_QUANTITY_VELOCITY = 3
  !> One number a segment: circulation, length^2/time.
  integer, parameter :: WFMM_QUANTITY_CIRCULATION = 4
  !> One number a parcel of dust: diameter, length.
  integer, parameter :: WFMM_QUANTITY_DIAMETER = 5
  !> One number a parcel of dust: density, mass/length^3.
  integer, parameter :: WFMM_QUANTITY_DENSITY = 6
  !> How a flow steps in time.
  !> Order 1, one evaluation a step.
  integer, parameter :: WFMM_INTEGRATOR_EULER = 0
  !> Adams-Bashforth, order 2, one evaluation a step; two where elements were added, vortices removed, bound segments set in
  !> another number or connectivity or the velocity callback set since the last step, or where the step is more than 100 times as
  !> long. The step size may vary.
  integer, parameter :: WFMM_INTEGRATOR_AB2 = 1
  !> Low-storage Runge-Kutta, order 3, three evaluations a step.
  integer, parameter :: WFMM_INTEGRATOR_RK3 = 2
  !> Runge-Kutta, order 4, four evaluations a step; the default.
  integer, parameter :: WFMM_INTEGRATOR_RK4 = 3
  !> How the strength a of particles follows the velocity gradient J, J_ij = du_i/dx_j.
  !> Strengths are constant; the default.
  integer, parameter :: WFMM_STRETCHING_NONE = 0
  !> da_i/dt = J_ij a_j.
  integer, parameter :: WFMM_STRETCHING_CLASSICAL = 1
  !> da_i/dt = J_ji a_j. Keeps the sum of a among particles of equal core radii, in free space or with periods; with a ground
  !> plane its normal component. Segments change the sum.
  integer, parameter :: WFMM_STRETCHING_TRANSPOSE = 2
  !> Half of each.
  integer, parameter :: WFMM_STRETCHING_MIXED = 3
  !> How viscosity acts on particles.
  !> Not at all; the default.
  integer, parameter :: WFMM_SPREADING_NONE = 0
  !> Cores spread: d(c^2)/dt = 2 viscosity. Gaussian cores only (WFMM_REG_GAUSS_ERF).
  integer, parameter :: WFMM_SPREADING_CORES = 1
  !> Why a diagnostic is NaN.
  !> It is not NaN.
  integer, parameter :: WFMM_REASON_KNOWN = 0
  !> Particles have another core than GAUSS_ERF.
  integer, parameter :: WFMM_REASON_KERNEL = 1
  !> There are filaments or bound segments.
  integer, parameter :: WFMM_REASON_SEGMENTS = 2
  !> There are more than 8,192 particles; the diagnostic is a sum over all pairs.
  integer, parameter :: WFMM_REASON_TOO_MANY = 3
  !> A particle has no core: its energy and enstrophy are infinite.
  integer, parameter :: WFMM_REASON_SINGULAR = 4
  !> The domain is periodic; the sums over pairs are those of free space.
  integer, parameter :: WFMM_REASON_PERIODIC = 5
  !> How a camera maps space to a picture.
  !> What is farther is smaller; the default.
  integer, parameter :: WFMM_PROJECTION_PERSPECTIVE = 0
  !> Parallel lines of sight.
  integer, parameter :: WFMM_PROJECTION_ORTHOGRAPHIC = 1
  !> What the colors of a picture say.
  !> The kind of the element; the default.
  integer, parameter :: WFMM_COLOR_KIND = 0
  !> The speed: of dust its own, else the fluid's there; of segments the mean of their ends.
  integer, parameter :: WFMM_COLOR_SPEED = 1
  !> The order in which the elements of a kind came: the newest at the upper end of the scale.
  integer, parameter :: WFMM_COLOR_AGE = 2
  !> Points: the number of points behind each other, as the opacity of the pixel. Lines: their kind.
  integer, parameter :: WFMM_COLOR_DENSITY = 3
  !> How points act on what is behind them.
  !> They cover it: 1 - exp(-opacity x points in a pixel); the default.
  integer, parameter :: WFMM_BLENDING_OPACITY = 0
  !> They add light to it.
  integer, parameter :: WFMM_BLENDING_ADDITIVE = 1
  !> First number of the version that this file was made for; wfmm_version tells the loaded library's.
  integer, parameter :: WFMM_VERSION_MAJOR = 0
  !> Second number of the version that this file was made for; wfmm_version tells the loaded library's.
  integer, parameter :: WFMM_VERSION_MINOR = 1
  !> Third number of the version that this file was made for; wfmm_version tells the loaded library's.
  integer, parameter :: WFMM_VERSION_PATCH = 0

  !> Version of the binary interface that this module was written for.
  integer, parameter :: WFMM_MODULE_ABI_VERSION = 1
  !> Longest text that the library hands over.
  integer, parameter :: TEXT_LENGTH = 8192

  !> Options of a session.
  type, bind(c) :: wfmm_session_options
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 40
    !> WFMM_BACKEND_*; default AUTO.
    integer(c_int32_t) :: backend = 0
    !> Number of the device; -1, the default, is the best one.
    integer(c_int32_t) :: device = -1
    !> Number of host threads, up to 4096. 0, the default: the number in the environment variable WAKEFMM_NUM_THREADS,
    !> else the first number in OMP_NUM_THREADS, else all that the process may use (its CPU affinity and the CPU quota
    !> of its control group). A variable without a number is ignored, with one warning. The same holds for the default
    !> session.
    integer(c_int32_t) :: threads = 0
    !> No flag is defined yet: 0.
    integer(c_int64_t) :: flags = 0
    !> How many device numbers devices has, up to 64; default 0.
    integer(c_int32_t) :: n_devices = 0
    !> 0.
    integer(c_int32_t) :: reserved = 0
    !> Numbers of the CUDA devices that compute together, read while the session is made; the default, NULL: device
    !> alone. Every device has all sources and a part of the targets. Arrays in device memory are those of the first
    !> one, which also holds the state of flows. A number may stand more than once. Not for distributed sessions, of
    !> which each rank has one device: WFMM_ERR_UNSUPPORTED. No effect with WFMM_BACKEND_CPU.
    type(c_ptr) :: devices = c_null_ptr
  end type

  !> Options of a plan.
  type, bind(c) :: wfmm_plan_options
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 104
    !> WFMM_METHOD_*; default AUTO.
    integer(c_int32_t) :: method = 0
    !> WFMM_PRECISION_* of the computation; default ARRAYS.
    integer(c_int32_t) :: precision = 0
    !> Truncation order of the expansions, at most WFMM_ORDER_MAX. 0, the default: derived from the tolerance. On the
    !> CPU every expansion has this order, and pairs of cells that need a higher one are summed directly. On a GPU it is
    !> a lower bound, and the order is at most 16. In single precision it is at most 11, except for harmonics of
    !> vortices at tolerances below 1e-4 outside of boxes with three equal periods.
    integer(c_int32_t) :: order = 0
    !> Largest number of elements in a leaf of the tree; 0, the default: chosen by the library. On a GPU values below 8
    !> count as 8, above 512 as 512.
    integer(c_int32_t) :: leaf_capacity = 0
    !> WFMM_REG_* of segments; default VATISTAS.
    integer(c_int32_t) :: segment_regularization = 3
    !> WFMM_REG_* of particles; default GAUSS_ERF.
    integer(c_int32_t) :: particle_regularization = 6
    !> Number of the first point in connectivities, 0 or 1; default 0 in C, 1 in Fortran.
    integer(c_int32_t) :: index_base = 1
    !> Largest relative L2 error of the velocity (or potential) over all targets, against the exact, regularized sum;
    !> default 1e-4. The error of gradients may be 30 times as large, relative to their own norm. A tolerance above 0.1
    !> counts as 0.1; wfmm_plan_recipe says so.
    real(c_double) :: tolerance = 1e-4_c_double
    !> Factor s of all sums; default 1/(4 pi). 1 gives sums without the factor.
    real(c_double) :: normalization = 7.957747154594767e-2_c_double
    !> Core radius where no array of radii is given, a length; default 0, the singular kernel. A plan with a
    !> regularization other than NONE and no radius above 0 logs a warning once and says so in its recipe.
    real(c_double) :: core_radius = 0e0_c_double
    !> WFMM_FLAG_*, or-ed; default 0.
    integer(c_int64_t) :: flags = 0
    !> Axis normal to an impermeable ground plane: 1 x, 2 y, 3 z; 0, the default: no plane. The images of all sources
    !> are included, with their cores. Images of charges have the same sign. Targets below the plane get the mirrored
    !> field. With a plane, velocity and gradient must both be in host memory, or both in device memory; on distributed
    !> sessions targets and outputs must be in host memory.
    integer(c_int32_t) :: plane_axis = 0
    !> WFMM_EXPANSION_*; default HARMONICS.
    integer(c_int32_t) :: expansion = 0
    !> Where the plane is on its axis, length units of the positions; default 0.
    real(c_double) :: plane_position = 0e0_c_double
    !> Period along x, y and z, a length; 0, the default: open. One, two or three periodic axes make a tube, a slab or a
    !> box. The field is that of all images of all elements. Positions outside of a period are moved back into it,
    !> segments by their middles. In a box a uniform background balances a net strength, and the mean of velocity and
    !> potential is zero. In tubes and slabs images are summed symmetrically; charges must add to zero, else
    !> WFMM_ERR_VALUE. WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create for a period along the normal of a ground
    !> plane, and for a period more than 1e6 times as long as another; by evaluate for an extent of very many periods,
    !> for cores that reach through many periods, for particles of GAUSS_ERF in a box with cores above half of its
    !> longest period, and with WFMM_BACKEND_CUDA where sources with the near images of a tube, slab or box of unequal
    !> sides are too many, or for segments several periods long in a box with equal sides.
    real(c_double) :: period(3) = 0e0_c_double
  end type

  !> What the last evaluation of a plan did.
  type, bind(c) :: wfmm_report
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 224
    !> WFMM_BACKEND_* that was used.
    integer(c_int32_t) :: backend = 0
    !> WFMM_METHOD_* that was used.
    integer(c_int32_t) :: method = 0
    !> Highest order of the expansions; 0 for a direct sum.
    integer(c_int32_t) :: order = 0
    !> Levels of the tree below its root.
    integer(c_int32_t) :: depth = 0
    !> WFMM_PRECISION_* of the computation.
    integer(c_int32_t) :: precision = 0
    !> Cells of the source and target trees.
    integer(c_int64_t) :: cells = 0
    !> Cell pairs of the far field; for a treecode pairs of a cell and a group of targets. 0 on a GPU.
    integer(c_int64_t) :: far_pairs = 0
    !> Element pairs that were summed directly, those of the core correction included.
    integer(c_int64_t) :: near_pairs = 0
    !> Host memory of the plan in bytes.
    integer(c_int64_t) :: host_bytes = 0
    !> Device memory of the plan in bytes.
    integer(c_int64_t) :: device_bytes = 0
    !> Error of the fast multipole method, or the treecode, found at the sampled targets: the larger of the relative L2
    !> error of the velocity (potential) and a thirtieth of the gradient's; on a GPU with three standard errors added. 0
    !> after a direct sum.
    real(c_double) :: estimated_error = 0
    !> Wall-clock seconds of each pass, indexed by WFMM_PASS_*. On the CPU a pass whose result was kept has 0. On a GPU
    !> small evaluations are timed as a whole, since timers between the passes would slow them; one in sixteen is timed
    !> pass by pass, and its proportions are used for the others.
    real(c_double) :: seconds(0:WFMM_PASS_COUNT-1) = 0
    !> Element pairs of the core correction: far pairs at which the regularized kernel still differs from the singular
    !> one. 0 on a GPU, which counts them in near_pairs only.
    integer(c_int64_t) :: core_pairs = 0
    !> Times that the field missed its tolerance at the sampled targets and was computed again: with higher orders, in
    !> double precision or directly.
    integer(c_int64_t) :: retries = 0
    !> Kinds of elements that have a regularization but no core radius above 0, so that their kernel is singular: 1
    !> segments, 2 particles, 3 both, 0 none. Radii in device memory are not read.
    integer(c_int64_t) :: singular = 0
  end type

  !> Options of a flow.
  type, bind(c) :: wfmm_flow_options
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 144
    !> WFMM_INTEGRATOR_*; default RK4.
    integer(c_int32_t) :: integrator = 3
    !> WFMM_STRETCHING_* of particles; default NONE.
    integer(c_int32_t) :: stretching = 0
    !> WFMM_SPREADING_* of particles; default NONE.
    integer(c_int32_t) :: spreading = 0
    !> Kinematic viscosity, length^2/time; default 0. Core radii of filaments follow d(c^2)/dt = 4 x 1.25643 (viscosity
    !> + squire |circulation|) - c^2 (dl/dt)/l, l the length of a segment.
    real(c_double) :: viscosity = 0e0_c_double
    !> Squire's factor of |circulation| in the growth of filament cores (Squire 1965), a number without unit; default 0.
    real(c_double) :: squire = 0e0_c_double
    !> Core radius, a length, above which particles that spread get narrower cores, of core_limit/sqrt(2), and strengths
    !> that carry the same vorticity; 0, the default: never. Needs WFMM_SPREADING_CORES. WFMM_ERR_UNSUPPORTED with a
    !> period.
    real(c_double) :: core_limit = 0e0_c_double
    !> Length above which filament segments are split into equal pieces after a step; 0, the default: never.
    real(c_double) :: split_length = 0e0_c_double
    !> Acceleration of dust by gravity, length/time^2; default 0.
    real(c_double) :: gravity(3) = 0e0_c_double
    !> Density of the fluid, mass/length^3, for buoyancy and Reynolds number of dust; 0, the default: no buoyancy, and
    !> Stokes drag at any Reynolds number.
    real(c_double) :: fluid_density = 0e0_c_double
    !> Dynamic viscosity of the fluid, mass/(length time), for the drag of dust; 0, the default: dust is refused.
    real(c_double) :: fluid_viscosity = 0e0_c_double
    !> Coefficient of restitution of dust at the ground plane, 0 to 1: the share of the normal velocity that is kept,
    !> reversed; default 0.
    real(c_double) :: restitution = 0e0_c_double
    !> Share of its tangential velocity that dust loses at the ground plane, 0 to 1; default 0.
    real(c_double) :: friction = 0e0_c_double
    !> 0.
    real(c_double) :: reserved(4) = 0e0_c_double
    !> No flag is defined yet: 0.
    integer(c_int64_t) :: flags = 0
  end type

  !> Invariants and norms of a flow.
  type, bind(c) :: wfmm_diagnostics
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 160
    !> WFMM_REASON_*: why energy, enstrophy and divergence are NaN, or KNOWN.
    integer(c_int32_t) :: reason = 0
    !> Time of the flow.
    real(c_double) :: time = 0
    !> Sum of the strengths a of particles, and of circulation times length vector of filaments and bound segments,
    !> length^3/time.
    real(c_double) :: total_strength(3) = 0
    !> Half the sum of x cross a, a as above, x at the middle of a segment, length^4/time. With a ground plane only its
    !> tangential components are conserved.
    real(c_double) :: linear_impulse(3) = 0
    !> A third of the sum of x cross (x cross a), length^5/time. With a ground plane only its normal component is
    !> conserved.
    real(c_double) :: angular_impulse(3) = 0
    !> Half the integral of u^2, u the velocity that the particles induce, length^5/time^2; with a ground plane over the
    !> half space.
    real(c_double) :: energy = 0
    !> Integral of |curl u|^2 over the same space, length^3/time^2.
    real(c_double) :: enstrophy = 0
    !> Root of the integral of |omega - curl u|^2 over that of |omega|^2, omega the vorticity that the particles carry:
    !> the part of it that is not free of divergence.
    real(c_double) :: divergence = 0
    !> The largest speed of the moving points at the present time, length/time; for dust that of the parcels.
    real(c_double) :: largest_velocity = 0
    !> The longest distance that a moving point has gone in the last step, length.
    real(c_double) :: largest_displacement = 0
    !> How often cores above core_limit were narrowed since the flow was made or loaded.
    integer(c_int64_t) :: reinterpolations = 0
    !> Of the last time: root mean square of the change of vorticity at the particles, relative to that of the
    !> vorticity; of the strengths that the particles have now, with what was added to them.
    real(c_double) :: reinterpolation_residual = 0
    !> Of the last time: what the particles' total strength lacked, relative to the sum of magnitudes. It was added to
    !> the strengths again, except with a ground plane.
    real(c_double) :: reinterpolation_strength = 0
    !> Of the last time: the same of their impulse around the middle of their positions, relative to half the sum of
    !> |x||a|.
    real(c_double) :: reinterpolation_impulse = 0
  end type

  !> Where a picture of a flow is taken from and how its elements look.
  type, bind(c) :: wfmm_camera
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 200
    !> WFMM_PROJECTION_*; default PERSPECTIVE.
    integer(c_int32_t) :: projection = 0
    !> WFMM_COLOR_*; default KIND.
    integer(c_int32_t) :: color = 0
    !> WFMM_BLENDING_* of points; default OPACITY.
    integer(c_int32_t) :: blending = 0
    !> Kinds that are drawn: the sum of 1 << WFMM_KIND_*; default 31, all.
    integer(c_int32_t) :: kinds = 31
    !> 1, the default: eye and target give the direction only, and the camera stands where all that is drawn just fits
    !> in. 0: the camera stands at eye.
    integer(c_int32_t) :: fit = 1
    !> Where the camera is; default (2, -3, 1.5).
    real(c_double) :: eye(3) = [2e0_c_double, -3e0_c_double, 1.5e0_c_double]
    !> The point in the middle of the picture; default 0.
    real(c_double) :: target(3) = [0e0_c_double, 0e0_c_double, 0e0_c_double]
    !> A direction that points upwards in the picture; default z.
    real(c_double) :: up(3) = [0e0_c_double, 0e0_c_double, 1e0_c_double]
    !> Angle between the lower and the upper edge in degrees, of a perspective; default 40.
    real(c_double) :: field_of_view = 4e1_c_double
    !> Length between the lower and the upper edge, of an orthographic picture without fit; default 1.
    real(c_double) :: view_height = 1e0_c_double
    !> What is closer to the plane of the eye, or behind it, is not drawn; 0, the default: a thousandth of the distance
    !> of eye and target.
    real(c_double) :: near_distance = 0e0_c_double
    !> Diameter of tracers and dust in pixels at the distance of the target; a perspective makes it smaller or fainter
    !> beyond; default 1.5. Particles have their cores' size, if that is larger.
    real(c_double) :: point_size = 1.5e0_c_double
    !> Width of segments in pixels; default 2.
    real(c_double) :: line_width = 2e0_c_double
    !> Opacity of a point; 0, the default: so that pixels with points are about half covered.
    real(c_double) :: opacity = 0e0_c_double
    !> Speeds at the ends of the color scale; equal, the default: the range of what is drawn.
    real(c_double) :: color_range(2) = [0e0_c_double, 0e0_c_double]
    !> Red, green, blue, alpha behind everything, 0 to 1; default a dark blue without transparency.
    real(c_double) :: background(4) = [4e-2_c_double, 6e-2_c_double, 1e-1_c_double, 1e0_c_double]
    !> Distance of the lines of a grid on the ground plane, which is drawn where the camera is above it; 0, the default:
    !> none.
    real(c_double) :: grid = 0e0_c_double
  end type

  !> Back end, device and threads. Any thread may use it.
  type :: wfmm_session
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Sources, targets, tree and results of one sum. One thread at a time; a second caller gets WFMM_ERR_BUSY.
  type :: wfmm_plan
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Vortex elements, tracers and dust that move step by step. One thread at a time; a second caller gets WFMM_ERR_BUSY.
  type :: wfmm_flow
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Functions by which the processes (ranks) of a distributed session communicate; libwakefmm_mpi has those for MPI.
  type, bind(c) :: wfmm_communicator
    !> Size of this struct as the caller knows it.
    integer(c_int32_t) :: struct_size = 64
    !> This process, 0 to size - 1.
    integer(c_int32_t) :: rank = 0
    !> Number of processes.
    integer(c_int32_t) :: size = 0
    !> Number of this process among those of its node: processes take the node's GPUs in turn.
    integer(c_int32_t) :: node_rank = 0
    !> Handed to every function.
    type(c_ptr) :: user = c_null_ptr
    !> Reduces n values over all ranks, in place. kind: 0 double, 1 int64_t; operation: 0 sum, 1 least, 2 largest.
    type(c_funptr) :: allreduce = c_null_funptr
    !> Brings the same number of bytes of each rank to all; all gets size times bytes, in the order of ranks.
    type(c_funptr) :: allgather = c_null_funptr
    !> Sends bytes to each rank and receives bytes of each. Numbers of bytes and offsets, in bytes too, are arrays of
    !> size numbers. memory is WFMM_MEMORY_HOST.
    type(c_funptr) :: alltoallv = c_null_funptr
    !> Waits until every rank is there.
    type(c_funptr) :: barrier = c_null_funptr
    !> Told once on each rank that the session and its plans and flows have ended, or that the session was not made; or
    !> NULL. Ranks are told at different times, on any thread: it must not communicate. Not called for a communicator
    !> that is refused itself.
    type(c_funptr) :: release = c_null_funptr
  end type

  interface wfmm_flow_add_dust
    module procedure wfmm_flow_add_dust_f32
    module procedure wfmm_flow_add_dust_f64
  end interface
  interface wfmm_flow_add_filaments
    module procedure wfmm_flow_add_filaments_f32
    module procedure wfmm_flow_add_filaments_i64_f32
    module procedure wfmm_flow_add_filaments_f64
    module procedure wfmm_flow_add_filaments_i64_f64
  end interface
  interface wfmm_flow_add_particles
    module procedure wfmm_flow_add_particles_f32
    module procedure wfmm_flow_add_particles_f64
  end interface
  interface wfmm_flow_add_tracers
    module procedure wfmm_flow_add_tracers_f32
    module procedure wfmm_flow_add_tracers_f64
  end interface
  interface wfmm_flow_get
    module procedure wfmm_flow_get_f32
    module procedure wfmm_flow_get_scalars_f32
    module procedure wfmm_flow_get_f64
    module procedure wfmm_flow_get_scalars_f64
  end interface
  interface wfmm_flow_get_connectivity
    module procedure wfmm_flow_get_connectivity
    module procedure wfmm_flow_get_connectivity_i64
  end interface
  interface wfmm_flow_get_selected
    module procedure wfmm_flow_get_selected_f32
    module procedure wfmm_flow_get_selected_scalars_f32
    module procedure wfmm_flow_get_selected_f64
    module procedure wfmm_flow_get_selected_scalars_f64
  end interface
  interface wfmm_flow_set_bound_segments
    module procedure wfmm_flow_set_bound_segments_f32
    module procedure wfmm_flow_set_bound_segments_i64_f32
    module procedure wfmm_flow_set_bound_segments_f64
    module procedure wfmm_flow_set_bound_segments_i64_f64
  end interface
  interface wfmm_flow_set_dust
    module procedure wfmm_flow_set_dust_f32
    module procedure wfmm_flow_set_dust_f64
  end interface
  interface wfmm_flow_set_filaments
    module procedure wfmm_flow_set_filaments_f32
    module procedure wfmm_flow_set_filaments_i64_f32
    module procedure wfmm_flow_set_filaments_f64
    module procedure wfmm_flow_set_filaments_i64_f64
  end interface
  interface wfmm_flow_set_particles
    module procedure wfmm_flow_set_particles_f32
    module procedure wfmm_flow_set_particles_f64
  end interface
  interface wfmm_flow_set_tracers
    module procedure wfmm_flow_set_tracers_f32
    module procedure wfmm_flow_set_tracers_f64
  end interface
  interface wfmm_flow_velocity
    module procedure wfmm_flow_velocity_f32
    module procedure wfmm_flow_velocity_f64
  end interface
  interface wfmm_induce_particles
    module procedure wfmm_induce_particles_f32
    module procedure wfmm_induce_particles_f64
  end interface
  interface wfmm_induce_segments
    module procedure wfmm_induce_segments_f32
    module procedure wfmm_induce_segments_i64_f32
    module procedure wfmm_induce_segments_f64
    module procedure wfmm_induce_segments_i64_f64
  end interface
  interface wfmm_plan_check
    module procedure wfmm_plan_check_f32
    module procedure wfmm_plan_check_f64
  end interface
  interface wfmm_plan_evaluate
    module procedure wfmm_plan_evaluate_f32
    module procedure wfmm_plan_evaluate_f64
  end interface
  interface wfmm_plan_evaluate_async
    module procedure wfmm_plan_evaluate_async_f32
    module procedure wfmm_plan_evaluate_async_f64
  end interface
  interface wfmm_plan_evaluate_potential
    module procedure wfmm_plan_evaluate_potential_f32
    module procedure wfmm_plan_evaluate_potential_f64
  end interface
  interface wfmm_plan_set_charge
    module procedure wfmm_plan_set_charge_f32
    module procedure wfmm_plan_set_charge_f64
  end interface
  interface wfmm_plan_set_charges
    module procedure wfmm_plan_set_charges_f32
    module procedure wfmm_plan_set_charges_f64
  end interface
  interface wfmm_plan_set_circulation
    module procedure wfmm_plan_set_circulation_f32
    module procedure wfmm_plan_set_circulation_f64
  end interface
  interface wfmm_plan_set_particles
    module procedure wfmm_plan_set_particles_f32
    module procedure wfmm_plan_set_particles_f64
  end interface
  interface wfmm_plan_set_segments
    module procedure wfmm_plan_set_segments_f32
    module procedure wfmm_plan_set_segments_i64_f32
    module procedure wfmm_plan_set_segments_f64
    module procedure wfmm_plan_set_segments_i64_f64
  end interface
  interface wfmm_plan_set_strength
    module procedure wfmm_plan_set_strength_f32
    module procedure wfmm_plan_set_strength_f64
  end interface
  !> New strengths, same positions: a one-dimensional array is a circulation, never a charge (wfmm_plan_set_charge); a
  !> two-dimensional one holds strengths of particles.
  interface wfmm_plan_set_strengths
    module procedure wfmm_plan_set_circulation_f32
    module procedure wfmm_plan_set_strength_f32
    module procedure wfmm_plan_set_circulation_f64
    module procedure wfmm_plan_set_strength_f64
  end interface
  interface wfmm_plan_set_targets
    module procedure wfmm_plan_set_targets_f32
    module procedure wfmm_plan_set_targets_f64
  end interface

  interface
    function c_wfmm_abi_version() bind(c, name="wfmm_abi_version") result(outcome)
      import
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_status_name(status) bind(c, name="wfmm_status_name") result(outcome)
      import
      integer(c_int32_t), value :: status
      type(c_ptr) :: outcome
    end function

    function c_wfmm_version(major, minor, patch) bind(c, name="wfmm_version") result(outcome)
      import
      integer(c_int32_t), intent(inout), optional :: major
      integer(c_int32_t), intent(inout), optional :: minor
      integer(c_int32_t), intent(inout), optional :: patch
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_last_error(buf, capacity, out_length) bind(c, name="wfmm_last_error") result(outcome)
      import
      character(kind=c_char), intent(inout) :: buf(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(inout), optional :: out_length
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_last_error_set(message, length) bind(c, name="wfmm_last_error_set") result(outcome)
      import
      character(kind=c_char), intent(in) :: message(*)
      integer(c_size_t), value :: length
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_log_set(level, callback, user) bind(c, name="wfmm_log_set") result(outcome)
      import
      integer(c_int32_t), value :: level
      type(c_funptr), value :: callback
      type(c_ptr), value :: user
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_options_init(options, size) bind(c, name="wfmm_session_options_init") result(outcome)
      import
      type(wfmm_session_options), intent(inout) :: options
      integer(c_size_t), value :: size
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_create(options, out) bind(c, name="wfmm_session_create") result(outcome)
      import
      type(wfmm_session_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: out
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_describe(session, buf, capacity, out_length) bind(c, &
      name="wfmm_session_describe") result(outcome)
      import
      type(c_ptr), value :: session
      character(kind=c_char), intent(inout) :: buf(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(inout), optional :: out_length
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_destroy(session) bind(c, name="wfmm_session_destroy") result(outcome)
      import
      type(c_ptr), intent(inout) :: session
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_create_distributed(options, communicator, out) bind(c, &
      name="wfmm_session_create_distributed") result(outcome)
      import
      type(wfmm_session_options), intent(in), optional :: options
      type(wfmm_communicator), intent(in) :: communicator
      type(c_ptr), intent(inout) :: out
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_options_init(options, size) bind(c, name="wfmm_plan_options_init") result(outcome)
      import
      type(wfmm_plan_options), intent(inout) :: options
      integer(c_size_t), value :: size
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_create(session, options, out) bind(c, name="wfmm_plan_create") result(outcome)
      import
      type(c_ptr), value :: session
      type(wfmm_plan_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: out
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_prepare(plan) bind(c, name="wfmm_plan_prepare") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_counts(plan, n_segments, n_particles, n_charges, n_targets) bind(c, &
      name="wfmm_plan_counts") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(inout), optional :: n_segments
      integer(c_int64_t), intent(inout), optional :: n_particles
      integer(c_int64_t), intent(inout), optional :: n_charges
      integer(c_int64_t), intent(inout), optional :: n_targets
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_workspace(plan, host_bytes, device_bytes) bind(c, &
      name="wfmm_plan_workspace") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(inout), optional :: host_bytes
      integer(c_int64_t), intent(inout), optional :: device_bytes
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_recipe(plan, buf, capacity, out_length) bind(c, name="wfmm_plan_recipe") result(outcome)
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(inout) :: buf(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(inout), optional :: out_length
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_report(plan, report) bind(c, name="wfmm_plan_report") result(outcome)
      import
      type(c_ptr), value :: plan
      type(wfmm_report), intent(inout) :: report
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_destroy(plan) bind(c, name="wfmm_plan_destroy") result(outcome)
      import
      type(c_ptr), intent(inout) :: plan
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_segments_f32(plan, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_plan_set_segments_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_points
      real(c_float), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_float), intent(in) :: circulation(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_segments_f64(plan, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_plan_set_segments_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_points
      real(c_double), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_double), intent(in) :: circulation(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_particles_f32(plan, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_plan_set_particles_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in) :: strength(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_particles_f64(plan, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_plan_set_particles_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in) :: strength(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_charges_f32(plan, n, position, charge, memory) bind(c, &
      name="wfmm_plan_set_charges_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in) :: charge(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_charges_f64(plan, n, position, charge, memory) bind(c, &
      name="wfmm_plan_set_charges_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in) :: charge(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_strengths_f32(plan, n_segments, circulation, n_particles, strength, n_charges, charge, &
      memory) bind(c, name="wfmm_plan_set_strengths_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_segments
      real(c_float), intent(in), optional :: circulation(*)
      integer(c_int64_t), value :: n_particles
      real(c_float), intent(in), optional :: strength(*)
      integer(c_int64_t), value :: n_charges
      real(c_float), intent(in), optional :: charge(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_strengths_f64(plan, n_segments, circulation, n_particles, strength, n_charges, charge, &
      memory) bind(c, name="wfmm_plan_set_strengths_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_segments
      real(c_double), intent(in), optional :: circulation(*)
      integer(c_int64_t), value :: n_particles
      real(c_double), intent(in), optional :: strength(*)
      integer(c_int64_t), value :: n_charges
      real(c_double), intent(in), optional :: charge(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_targets_f32(plan, n, position, memory) bind(c, &
      name="wfmm_plan_set_targets_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_targets_f64(plan, n, position, memory) bind(c, &
      name="wfmm_plan_set_targets_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_f32(plan, velocity, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      real(c_float), intent(inout) :: velocity(*)
      real(c_float), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_f64(plan, velocity, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      real(c_double), intent(inout) :: velocity(*)
      real(c_double), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_potential_f32(plan, potential, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_potential_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      real(c_float), intent(inout) :: potential(*)
      real(c_float), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_potential_f64(plan, potential, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_potential_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      real(c_double), intent(inout) :: potential(*)
      real(c_double), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_check_f32(plan, n_samples, seed, out_relative_l2) bind(c, &
      name="wfmm_plan_check_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_samples
      integer(c_int64_t), value :: seed
      real(c_float), intent(inout) :: out_relative_l2
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_check_f64(plan, n_samples, seed, out_relative_l2) bind(c, &
      name="wfmm_plan_check_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: n_samples
      integer(c_int64_t), value :: seed
      real(c_double), intent(inout) :: out_relative_l2
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_async_f32(plan, velocity, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_async_f32") result(outcome)
      import
      type(c_ptr), value :: plan
      type(c_ptr), value :: velocity
      type(c_ptr), value :: gradient
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_evaluate_async_f64(plan, velocity, gradient, memory) bind(c, &
      name="wfmm_plan_evaluate_async_f64") result(outcome)
      import
      type(c_ptr), value :: plan
      type(c_ptr), value :: velocity
      type(c_ptr), value :: gradient
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_wait(plan) bind(c, name="wfmm_plan_wait") result(outcome)
      import
      type(c_ptr), value :: plan
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_plan_set_stream(plan, stream) bind(c, name="wfmm_plan_set_stream") result(outcome)
      import
      type(c_ptr), value :: plan
      type(c_ptr), value :: stream
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_register(session, array, bytes) bind(c, name="wfmm_session_register") result(outcome)
      import
      type(c_ptr), value :: session
      type(c_ptr), value :: array
      integer(c_int64_t), value :: bytes
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_session_unregister(session, array) bind(c, name="wfmm_session_unregister") result(outcome)
      import
      type(c_ptr), value :: session
      type(c_ptr), value :: array
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_induce_segments_f32(n_points, points, n, ld, connectivity, circulation, core_radius, n_targets, &
      target, options, velocity, gradient) bind(c, name="wfmm_induce_segments_f32") result(outcome)
      import
      integer(c_int64_t), value :: n_points
      real(c_float), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_float), intent(in) :: circulation(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int64_t), value :: n_targets
      real(c_float), intent(in) :: target(*)
      type(wfmm_plan_options), intent(in), optional :: options
      real(c_float), intent(inout) :: velocity(*)
      real(c_float), intent(inout), optional :: gradient(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_induce_segments_f64(n_points, points, n, ld, connectivity, circulation, core_radius, n_targets, &
      target, options, velocity, gradient) bind(c, name="wfmm_induce_segments_f64") result(outcome)
      import
      integer(c_int64_t), value :: n_points
      real(c_double), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_double), intent(in) :: circulation(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int64_t), value :: n_targets
      real(c_double), intent(in) :: target(*)
      type(wfmm_plan_options), intent(in), optional :: options
      real(c_double), intent(inout) :: velocity(*)
      real(c_double), intent(inout), optional :: gradient(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_induce_particles_f32(n, position, strength, core_radius, n_targets, target, options, velocity, &
      gradient) bind(c, name="wfmm_induce_particles_f32") result(outcome)
      import
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in) :: strength(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int64_t), value :: n_targets
      real(c_float), intent(in) :: target(*)
      type(wfmm_plan_options), intent(in), optional :: options
      real(c_float), intent(inout) :: velocity(*)
      real(c_float), intent(inout), optional :: gradient(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_induce_particles_f64(n, position, strength, core_radius, n_targets, target, options, velocity, &
      gradient) bind(c, name="wfmm_induce_particles_f64") result(outcome)
      import
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in) :: strength(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int64_t), value :: n_targets
      real(c_double), intent(in) :: target(*)
      type(wfmm_plan_options), intent(in), optional :: options
      real(c_double), intent(inout) :: velocity(*)
      real(c_double), intent(inout), optional :: gradient(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_options_init(options, size) bind(c, name="wfmm_flow_options_init") result(outcome)
      import
      type(wfmm_flow_options), intent(inout) :: options
      integer(c_size_t), value :: size
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_create(session, plan_options, options, out) bind(c, &
      name="wfmm_flow_create") result(outcome)
      import
      type(c_ptr), value :: session
      type(wfmm_plan_options), intent(in), optional :: plan_options
      type(wfmm_flow_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: out
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_remove(flow, kind, n, identity, memory) bind(c, name="wfmm_flow_remove") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: n
      integer(c_int64_t), intent(in) :: identity(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_remove_mask(flow, kind, n, mask, memory) bind(c, &
      name="wfmm_flow_remove_mask") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: n
      integer(c_int8_t), intent(in) :: mask(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_free_stream(flow, velocity) bind(c, name="wfmm_flow_set_free_stream") result(outcome)
      import
      type(c_ptr), value :: flow
      real(c_double), intent(in) :: velocity(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_velocity_callback(flow, callback, user) bind(c, &
      name="wfmm_flow_set_velocity_callback") result(outcome)
      import
      type(c_ptr), value :: flow
      type(c_funptr), value :: callback
      type(c_ptr), value :: user
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_advance(flow, dt, steps) bind(c, name="wfmm_flow_advance") result(outcome)
      import
      type(c_ptr), value :: flow
      real(c_double), value :: dt
      integer(c_int64_t), value :: steps
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_time(flow, time, step) bind(c, name="wfmm_flow_time") result(outcome)
      import
      type(c_ptr), value :: flow
      real(c_double), intent(inout), optional :: time
      integer(c_int64_t), intent(inout), optional :: step
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_counts(flow, kind, elements, points) bind(c, name="wfmm_flow_counts") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int64_t), intent(inout), optional :: elements
      integer(c_int64_t), intent(inout), optional :: points
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_connectivity(flow, kind, capacity, connectivity, memory) bind(c, &
      name="wfmm_flow_get_connectivity") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: capacity
      integer(c_int32_t), intent(inout) :: connectivity(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_diagnostics_init(diagnostics, size) bind(c, name="wfmm_diagnostics_init") result(outcome)
      import
      type(wfmm_diagnostics), intent(inout) :: diagnostics
      integer(c_size_t), value :: size
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_diagnostics(flow, diagnostics) bind(c, name="wfmm_flow_diagnostics") result(outcome)
      import
      type(c_ptr), value :: flow
      type(wfmm_diagnostics), intent(inout) :: diagnostics
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_save(flow, path) bind(c, name="wfmm_flow_save") result(outcome)
      import
      type(c_ptr), value :: flow
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_load(session, path, out) bind(c, name="wfmm_flow_load") result(outcome)
      import
      type(c_ptr), value :: session
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(inout) :: out
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_options(flow, plan_options, options) bind(c, &
      name="wfmm_flow_get_options") result(outcome)
      import
      type(c_ptr), value :: flow
      type(wfmm_plan_options), intent(inout), optional :: plan_options
      type(wfmm_flow_options), intent(inout), optional :: options
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_report(flow, report) bind(c, name="wfmm_flow_report") result(outcome)
      import
      type(c_ptr), value :: flow
      type(wfmm_report), intent(inout) :: report
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_destroy(flow) bind(c, name="wfmm_flow_destroy") result(outcome)
      import
      type(c_ptr), intent(inout) :: flow
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_particles_f32(flow, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_flow_set_particles_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in) :: strength(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_particles_f64(flow, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_flow_set_particles_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in) :: strength(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_particles_f32(flow, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_flow_add_particles_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in) :: strength(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_particles_f64(flow, n, position, strength, core_radius, memory) bind(c, &
      name="wfmm_flow_add_particles_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in) :: strength(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_filaments_f32(flow, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_flow_set_filaments_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_float), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_float), intent(in) :: circulation(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_filaments_f64(flow, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_flow_set_filaments_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_double), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_double), intent(in) :: circulation(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_filaments_f32(flow, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_flow_add_filaments_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_float), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_float), intent(in) :: circulation(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_filaments_f64(flow, n_points, points, n, ld, connectivity, circulation, core_radius, &
      memory) bind(c, name="wfmm_flow_add_filaments_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_double), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_double), intent(in) :: circulation(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_bound_segments_f32(flow, n_points, points, n, ld, connectivity, circulation, &
      core_radius, memory) bind(c, name="wfmm_flow_set_bound_segments_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_float), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_float), intent(in) :: circulation(*)
      real(c_float), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_bound_segments_f64(flow, n_points, points, n, ld, connectivity, circulation, &
      core_radius, memory) bind(c, name="wfmm_flow_set_bound_segments_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_points
      real(c_double), intent(in) :: points(*)
      integer(c_int64_t), value :: n
      integer(c_int64_t), value :: ld
      integer(c_int32_t), intent(in) :: connectivity(*)
      real(c_double), intent(in) :: circulation(*)
      real(c_double), intent(in), optional :: core_radius(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_tracers_f32(flow, n, position, memory) bind(c, &
      name="wfmm_flow_set_tracers_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_tracers_f64(flow, n, position, memory) bind(c, &
      name="wfmm_flow_set_tracers_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_tracers_f32(flow, n, position, memory) bind(c, &
      name="wfmm_flow_add_tracers_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_tracers_f64(flow, n, position, memory) bind(c, &
      name="wfmm_flow_add_tracers_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_dust_f32(flow, n, position, velocity, diameter, density, memory) bind(c, &
      name="wfmm_flow_set_dust_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in), optional :: velocity(*)
      real(c_float), intent(in) :: diameter(*)
      real(c_float), intent(in) :: density(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_set_dust_f64(flow, n, position, velocity, diameter, density, memory) bind(c, &
      name="wfmm_flow_set_dust_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in), optional :: velocity(*)
      real(c_double), intent(in) :: diameter(*)
      real(c_double), intent(in) :: density(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_dust_f32(flow, n, position, velocity, diameter, density, memory) bind(c, &
      name="wfmm_flow_add_dust_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_float), intent(in) :: position(*)
      real(c_float), intent(in), optional :: velocity(*)
      real(c_float), intent(in) :: diameter(*)
      real(c_float), intent(in) :: density(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_add_dust_f64(flow, n, position, velocity, diameter, density, memory) bind(c, &
      name="wfmm_flow_add_dust_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: position(*)
      real(c_double), intent(in), optional :: velocity(*)
      real(c_double), intent(in) :: diameter(*)
      real(c_double), intent(in) :: density(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_f32(flow, kind, quantity, capacity, values, identity, memory) bind(c, &
      name="wfmm_flow_get_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int32_t), value :: quantity
      integer(c_int64_t), value :: capacity
      real(c_float), intent(inout) :: values(*)
      integer(c_int64_t), intent(inout), optional :: identity(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_f64(flow, kind, quantity, capacity, values, identity, memory) bind(c, &
      name="wfmm_flow_get_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int32_t), value :: quantity
      integer(c_int64_t), value :: capacity
      real(c_double), intent(inout) :: values(*)
      integer(c_int64_t), intent(inout), optional :: identity(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_selected_f32(flow, kind, quantity, n, identity, values, memory) bind(c, &
      name="wfmm_flow_get_selected_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int32_t), value :: quantity
      integer(c_int64_t), value :: n
      integer(c_int64_t), intent(in) :: identity(*)
      real(c_float), intent(inout) :: values(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_get_selected_f64(flow, kind, quantity, n, identity, values, memory) bind(c, &
      name="wfmm_flow_get_selected_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int32_t), value :: kind
      integer(c_int32_t), value :: quantity
      integer(c_int64_t), value :: n
      integer(c_int64_t), intent(in) :: identity(*)
      real(c_double), intent(inout) :: values(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_velocity_f32(flow, n_targets, target, velocity, gradient, memory) bind(c, &
      name="wfmm_flow_velocity_f32") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_targets
      real(c_float), intent(in) :: target(*)
      real(c_float), intent(inout) :: velocity(*)
      real(c_float), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_velocity_f64(flow, n_targets, target, velocity, gradient, memory) bind(c, &
      name="wfmm_flow_velocity_f64") result(outcome)
      import
      type(c_ptr), value :: flow
      integer(c_int64_t), value :: n_targets
      real(c_double), intent(in) :: target(*)
      real(c_double), intent(inout) :: velocity(*)
      real(c_double), intent(inout), optional :: gradient(*)
      integer(c_int32_t), value :: memory
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_camera_init(camera, size) bind(c, name="wfmm_camera_init") result(outcome)
      import
      type(wfmm_camera), intent(inout) :: camera
      integer(c_size_t), value :: size
      integer(c_int32_t) :: outcome
    end function

    function c_wfmm_flow_picture(flow, camera, width, height, rgba, png_path) bind(c, &
      name="wfmm_flow_picture") result(outcome)
      import
      type(c_ptr), value :: flow
      type(wfmm_camera), intent(in), optional :: camera
      integer(c_int32_t), value :: width
      integer(c_int32_t), value :: height
      integer(c_int8_t), intent(inout), optional :: rgba(*)
      character(kind=c_char), intent(in), optional :: png_path(*)
      integer(c_int32_t) :: outcome
    end function

  end interface

  abstract interface
    !> Is told of an error of a call without ierr: its status WFMM_ERR_* and its message. Where it returns, so does the call.
    subroutine wfmm_error_handler(status, message)
      integer, intent(in) :: status
      character(len=*), intent(in) :: message
    end subroutine
  end interface
  procedure(wfmm_error_handler), pointer, save :: error_handler => null()

contains

  !> Version of the binary interface of the loaded library; compare with WFMM_MODULE_ABI_VERSION.
  function wfmm_abi_version() result(version)
    integer :: version

    version = int(c_wfmm_abi_version())
  end function

  !> Name of a status: "WFMM_ERR_NULL".
  function wfmm_status_name(status) result(name)
    integer, intent(in) :: status
    character(len=:), allocatable :: name
    character(kind=c_char), pointer :: c_name(:)
    integer(c_size_t) :: length

    call c_f_pointer(c_wfmm_status_name(int(status, c_int32_t)), c_name, [TEXT_LENGTH])
    length = 0
    do while (c_name(length + 1) /= c_null_char)
      length = length + 1
    end do
    name = from_c(c_name(1:length), length)
  end function

  !> The calling thread's last message: which argument, its value, what would be accepted.
  function wfmm_last_error() result(message)
    character(len=:), allocatable :: message
    character(kind=c_char) :: c_text(TEXT_LENGTH)
    integer(c_size_t) :: length

    message = ''
    if (c_wfmm_last_error(c_text, int(TEXT_LENGTH, c_size_t), length) == WFMM_OK) message = from_c(c_text, length)
  end function

  !> A C text of known length, as much of it as there is.
  function from_c(c_text, length) result(text)
    character(kind=c_char), intent(in) :: c_text(:)
    integer(c_size_t), intent(in) :: length
    character(len=:), allocatable :: text
    integer :: i

    allocate (character(len=min(int(length), TEXT_LENGTH - 1)) :: text)
    do i = 1, len(text)
      text(i:i) = c_text(i)
    end do
  end function

  !> Sets the procedure that is called instead of the stop where a call without ierr fails; without one, the stop is back.
  !> One for all threads, to be set before they start: a procedure of a module or an external one.
  subroutine wfmm_error_handler_set(handler)
    procedure(wfmm_error_handler), optional :: handler

    error_handler => null()
    if (present(handler)) error_handler => handler
  end subroutine

  !> Ends a call as every procedure here does: hands the status over in ierr, or, where that is absent and the status an
  !> error, calls the error handler, or prints the message and stops. For modules that build on this one.
  subroutine wfmm_finish(status, ierr)
    integer(c_int32_t), intent(in) :: status
    integer, intent(out), optional :: ierr

    if (present(ierr)) then
      ierr = int(status)
    else if (status /= WFMM_OK .and. associated(error_handler)) then
      call error_handler(int(status), wfmm_last_error())
    else if (status /= WFMM_OK) then
      write (error_unit, '(a)') 'wakefmm: '//wfmm_last_error()//' ['//wfmm_status_name(int(status))//']'
      error stop 1
    end if
  end subroutine

  !> Complains where an array has not the extents that are needed; the last one may be larger where may_be_longer.
  subroutine need(name, have, want, may_be_longer, status)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: have(:), want(:)
    logical, intent(in) :: may_be_longer
    integer(c_int32_t), intent(inout) :: status
    character(len=:), allocatable :: message
    integer :: last

    last = size(have)
    ! A negative count is the library's to refuse.
    if (status /= WFMM_OK .or. want(last) <= 0) return
    if (all(have == want)) return
    if (may_be_longer .and. all(have(:last - 1) == want(:last - 1)) .and. have(last) > want(last)) return
    message = name//' has shape ('//list(have)//'); ('//list(want)//') is needed'
    if (may_be_longer) message = message//', or a larger last extent'
    call complain(message, WFMM_ERR_SHAPE, status)
  end subroutine

  !> Complains where an array that is written after the call has returned is not contiguous: it would be a temporary.
  subroutine need_contiguous(name, is_so, status)
    character(len=*), intent(in) :: name
    logical, intent(in) :: is_so
    integer(c_int32_t), intent(inout) :: status

    if (status /= WFMM_OK .or. is_so) return
    call complain(name//' is not contiguous, and it is written after the call has returned', WFMM_ERR_SHAPE, status)
  end subroutine

  !> Complains of an object that is handed over and was not made, or no longer exists.
  subroutine need_handle(name, handle, status)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: handle
    integer(c_int32_t), intent(inout) :: status

    if (status /= WFMM_OK .or. c_associated(handle)) return
    call complain(name//' was not made, or was destroyed; leave it out for the default', WFMM_ERR_HANDLE, status)
  end subroutine

  !> Sets the message of an error that is found here, and its status.
  subroutine complain(message, error, status)
    character(len=*), intent(in) :: message
    integer, intent(in) :: error
    integer(c_int32_t), intent(inout) :: status

    status = c_wfmm_last_error_set(message, len(message, c_size_t))
    status = int(error, c_int32_t)
  end subroutine

  !> Point numbers of 32 bits for the first n columns of an array of 64; complains where that may not be in host memory.
  subroutine room(name, rows, n, memory, narrowed, status)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: rows, n
    integer(c_int32_t), intent(in) :: memory
    integer(c_int32_t), allocatable, intent(out) :: narrowed(:,:)
    integer(c_int32_t), intent(inout) :: status
    character(len=:), allocatable :: message
    integer :: failed

    allocate (narrowed(rows, max(merge(n, 0_c_int64_t, status == WFMM_OK), 0_c_int64_t)), source=-1_c_int32_t, stat=failed)
    if (status /= WFMM_OK) return
    if (failed /= 0) then
      call complain('no memory for a copy of '//name, WFMM_ERR_HOST_MEMORY, status)
    else if (memory /= WFMM_MEMORY_HOST) then
      message = name//' of 64-bit integers with memory = '//list([int(memory, c_int64_t)])//'; accepted: WFMM_MEMORY_HOST (0)'
      call complain(message, WFMM_ERR_MEMORY, status)
    end if
  end subroutine

  !> Converts the first n columns of point numbers to 32 bits; complains where one needs more.
  subroutine narrow(name, wide, n, memory, narrowed, status)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: wide(:,:), n
    integer(c_int32_t), intent(in) :: memory
    integer(c_int32_t), allocatable, intent(out) :: narrowed(:,:)
    integer(c_int32_t), intent(inout) :: status
    character(len=:), allocatable :: message
    integer(c_int64_t) :: k, ends

    call room(name, size(wide, 1, c_int64_t), n, memory, narrowed, status)
    if (status /= WFMM_OK) return
    ! Two points a segment; what a row holds beside them is not read.
    ends = min(2_c_int64_t, size(wide, 1, c_int64_t))
    do k = 1, size(narrowed, 2, c_int64_t)
      if (any(wide(:ends, k) > huge(0_c_int32_t) .or. wide(:ends, k) < -huge(0_c_int32_t))) then
        message = name//'(:,'//list([k])//') = '//list(wide(:ends, k))//'; point numbers of 32 bits are accepted'
        call complain(message, WFMM_ERR_INDEX, status)
        return
      end if
      narrowed(:ends, k) = int(wide(:ends, k), c_int32_t)
    end do
  end subroutine

  !> Hands over the point numbers that the library has written.
  subroutine widen(narrowed, wide, status)
    integer(c_int32_t), intent(in) :: narrowed(:,:), status
    integer(c_int64_t), intent(inout) :: wide(:,:)
    integer(c_int64_t) :: k

    if (status /= WFMM_OK) return
    do k = 1, size(narrowed, 2, c_int64_t)
      if (narrowed(1, k) >= 0) wide(:, k) = int(narrowed(:, k), c_int64_t)
    end do
  end subroutine

  !> Complains where a quantity of a flow has another number of numbers a row than the array.
  subroutine need_width(quantity, width, status)
    integer, intent(in) :: quantity, width
    integer(c_int32_t), intent(inout) :: status
    character(len=:), allocatable :: message
    integer :: wanted

    ! An unknown quantity is the library's to refuse.
    if (status /= WFMM_OK .or. quantity < WFMM_QUANTITY_POSITION .or. quantity > WFMM_QUANTITY_DENSITY) return
    wanted = 1
    if (any(quantity == [WFMM_QUANTITY_POSITION, WFMM_QUANTITY_STRENGTH, WFMM_QUANTITY_VELOCITY])) wanted = 3
    if (wanted == width) return
    message = 'values has rank 2; (n) is needed for a quantity of one number a row'
    if (wanted == 3) message = 'values has rank 1; (3, n) is needed for a quantity of three numbers a row'
    call complain(message, WFMM_ERR_SHAPE, status)
  end subroutine

  !> Numbers between commas.
  function list(numbers) result(text)
    integer(c_int64_t), intent(in) :: numbers(:)
    character(len=:), allocatable :: text
    character(len=20) :: digits
    integer :: i

    text = ''
    do i = 1, size(numbers)
      write (digits, '(i0)') numbers(i)
      if (i > 1) text = text//','
      text = text//trim(digits)
    end do
  end function

  !> Version of the library.
  subroutine wfmm_version(major, minor, patch, ierr)
    integer(c_int32_t), intent(inout), optional :: major
    integer(c_int32_t), intent(inout), optional :: minor
    integer(c_int32_t), intent(inout), optional :: patch
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_version(major, minor, patch)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets how much is logged (WFMM_LOG_*) and where: to a callback, or to standard error without one.
  subroutine wfmm_log_set(level, callback, user, ierr)
    integer, intent(in) :: level
    type(c_funptr), intent(in), optional :: callback
    type(c_ptr), intent(in), optional :: user
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_funptr) :: c_callback
    type(c_ptr) :: c_user

    status = WFMM_OK
    c_callback = c_null_funptr
    if (present(callback)) c_callback = callback
    c_user = c_null_ptr
    if (present(user)) c_user = user
    status = c_wfmm_log_set(int(level, c_int32_t), c_callback, c_user)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills options with the defaults.
  subroutine wfmm_session_options_init(options, ierr)
    type(wfmm_session_options), intent(out) :: options
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_session_options_init(options, int(options%struct_size, c_size_t))
    if (status == WFMM_OK) options = wfmm_session_options()
    call wfmm_finish(status, ierr)
  end subroutine

  !> Makes a session.
  subroutine wfmm_session_create(session, options, ierr)
    type(wfmm_session_options), intent(in), optional :: options
    type(wfmm_session), intent(inout) :: session
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(wfmm_session_options) :: c_options

    status = WFMM_OK
    if (present(options)) c_options = options
    status = c_wfmm_session_create(c_options, session%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Describes in one line what the session computes on.
  subroutine wfmm_session_describe(session, text, ierr)
    type(wfmm_session), intent(in) :: session
    character(len=:), allocatable, intent(out) :: text
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    character(kind=c_char) :: c_text(TEXT_LENGTH)
    integer(c_size_t) :: length

    status = WFMM_OK
    status = c_wfmm_session_describe(session%handle, c_text, int(TEXT_LENGTH, c_size_t), length)
    text = ''
    if (status == WFMM_OK) text = from_c(c_text, length)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Ends a session; plans that use it go on.
  subroutine wfmm_session_destroy(session, ierr)
    type(wfmm_session), intent(inout) :: session
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_session_destroy(session%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Makes a session that spans processes.
  subroutine wfmm_session_create_distributed(communicator, session, options, ierr)
    type(wfmm_session_options), intent(in), optional :: options
    type(wfmm_communicator), intent(in) :: communicator
    type(wfmm_session), intent(inout) :: session
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(wfmm_session_options) :: c_options

    status = WFMM_OK
    if (present(options)) c_options = options
    status = c_wfmm_session_create_distributed(c_options, communicator, session%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills options with the defaults.
  subroutine wfmm_plan_options_init(options, ierr)
    type(wfmm_plan_options), intent(out) :: options
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_options_init(options, int(options%struct_size, c_size_t))
    if (status == WFMM_OK) options = wfmm_plan_options()
    call wfmm_finish(status, ierr)
  end subroutine

  !> Makes a plan without sources and targets.
  subroutine wfmm_plan_create(plan, session, options, ierr)
    type(wfmm_session), intent(in), optional :: session
    type(wfmm_plan_options), intent(in), optional :: options
    type(wfmm_plan), intent(inout) :: plan
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_ptr) :: c_session
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_session = c_null_ptr
    if (present(session)) c_session = session%handle
    if (present(options)) c_options = options
    if (present(session)) call need_handle("session", c_session, status)
    if (status == WFMM_OK) status = c_wfmm_plan_create(c_session, c_options, plan%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Does in advance the part of the next evaluation that needs no output arrays.
  subroutine wfmm_plan_prepare(plan, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_prepare(plan%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the numbers of elements of the plan.
  subroutine wfmm_plan_counts(plan, n_segments, n_particles, n_charges, n_targets, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer(c_int64_t), intent(inout), optional :: n_segments
    integer(c_int64_t), intent(inout), optional :: n_particles
    integer(c_int64_t), intent(inout), optional :: n_charges
    integer(c_int64_t), intent(inout), optional :: n_targets
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_counts(plan%handle, n_segments, n_particles, n_charges, n_targets)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the memory that the plan uses now, in bytes: its copies of the arrays, trees, lists and expansions.
  subroutine wfmm_plan_workspace(plan, host_bytes, device_bytes, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer(c_int64_t), intent(inout), optional :: host_bytes
    integer(c_int64_t), intent(inout), optional :: device_bytes
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_workspace(plan%handle, host_bytes, device_bytes)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Describes in a paragraph what was chosen (method, order, leaf size, precision) and why.
  subroutine wfmm_plan_recipe(plan, text, ierr)
    type(wfmm_plan), intent(in) :: plan
    character(len=:), allocatable, intent(out) :: text
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    character(kind=c_char) :: c_text(TEXT_LENGTH)
    integer(c_size_t) :: length

    status = WFMM_OK
    status = c_wfmm_plan_recipe(plan%handle, c_text, int(TEXT_LENGTH, c_size_t), length)
    text = ''
    if (status == WFMM_OK) text = from_c(c_text, length)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills a report of the last evaluation: order, depth, cells, pairs, bytes, seconds per pass.
  subroutine wfmm_plan_report(plan, report, ierr)
    type(wfmm_plan), intent(in) :: plan
    type(wfmm_report), intent(inout) :: report
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_report(plan%handle, report)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Ends a plan; device arrays are no longer borrowed.
  subroutine wfmm_plan_destroy(plan, ierr)
    type(wfmm_plan), intent(inout) :: plan
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_destroy(plan%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the straight vortex segments; n = 0 removes them.
  subroutine wfmm_plan_set_segments_f32(plan, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_segments_f32(plan%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the straight vortex segments; n = 0 removes them. With point numbers of 64 bits, which are converted: the
  !> arrays must be in host memory.
  subroutine wfmm_plan_set_segments_i64_f32(plan, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_segments_f32(plan%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the straight vortex segments; n = 0 removes them.
  subroutine wfmm_plan_set_segments_f64(plan, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_segments_f64(plan%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the straight vortex segments; n = 0 removes them. With point numbers of 64 bits, which are converted: the
  !> arrays must be in host memory.
  subroutine wfmm_plan_set_segments_i64_f64(plan, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_segments_f64(plan%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex particles; n = 0 removes them.
  subroutine wfmm_plan_set_particles_f32(plan, position, strength, core_radius, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous :: strength(:,:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_particles_f32(plan%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex particles; n = 0 removes them.
  subroutine wfmm_plan_set_particles_f64(plan, position, strength, core_radius, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous :: strength(:,:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_particles_f64(plan%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the charges of the potential s sum(q/r), s the normalization; n = 0 removes them.
  subroutine wfmm_plan_set_charges_f32(plan, position, charge, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous :: charge(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("charge", shape(charge, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_charges_f32(plan%handle, c_n, position, charge, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the charges of the potential s sum(q/r), s the normalization; n = 0 removes them.
  subroutine wfmm_plan_set_charges_f64(plan, position, charge, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous :: charge(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("charge", shape(charge, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_charges_f64(plan%handle, c_n, position, charge, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new circulations of the segments at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_circulation_f32(plan, circulation, n_segments, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_segments
    real(c_float), intent(in), contiguous :: circulation(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_segments
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_segments = size(circulation, 1, c_int64_t)
    if (present(n_segments)) c_n_segments = int(n_segments, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("circulation", shape(circulation, c_int64_t), [c_n_segments], present(n_segments), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f32(plan=plan%handle, n_segments=c_n_segments, &
      circulation=circulation, n_particles=0_c_int64_t, n_charges=0_c_int64_t, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new strengths of the particles at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_strength_f32(plan, strength, n_particles, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_particles
    real(c_float), intent(in), contiguous :: strength(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_particles
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_particles = size(strength, 2, c_int64_t)
    if (present(n_particles)) c_n_particles = int(n_particles, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n_particles], present(n_particles), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f32(plan=plan%handle, n_segments=0_c_int64_t, &
      n_particles=c_n_particles, strength=strength, n_charges=0_c_int64_t, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new charges at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_charge_f32(plan, charge, n_charges, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_charges
    real(c_float), intent(in), contiguous :: charge(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_charges
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_charges = size(charge, 1, c_int64_t)
    if (present(n_charges)) c_n_charges = int(n_charges, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("charge", shape(charge, c_int64_t), [c_n_charges], present(n_charges), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f32(plan=plan%handle, n_segments=0_c_int64_t, &
      n_particles=0_c_int64_t, n_charges=c_n_charges, charge=charge, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new circulations of the segments at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_circulation_f64(plan, circulation, n_segments, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_segments
    real(c_double), intent(in), contiguous :: circulation(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_segments
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_segments = size(circulation, 1, c_int64_t)
    if (present(n_segments)) c_n_segments = int(n_segments, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("circulation", shape(circulation, c_int64_t), [c_n_segments], present(n_segments), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f64(plan=plan%handle, n_segments=c_n_segments, &
      circulation=circulation, n_particles=0_c_int64_t, n_charges=0_c_int64_t, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new strengths of the particles at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_strength_f64(plan, strength, n_particles, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_particles
    real(c_double), intent(in), contiguous :: strength(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_particles
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_particles = size(strength, 2, c_int64_t)
    if (present(n_particles)) c_n_particles = int(n_particles, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n_particles], present(n_particles), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f64(plan=plan%handle, n_segments=0_c_int64_t, &
      n_particles=c_n_particles, strength=strength, n_charges=0_c_int64_t, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets new charges at the same positions; trees and lists are kept.
  subroutine wfmm_plan_set_charge_f64(plan, charge, n_charges, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n_charges
    real(c_double), intent(in), contiguous :: charge(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_charges
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_charges = size(charge, 1, c_int64_t)
    if (present(n_charges)) c_n_charges = int(n_charges, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("charge", shape(charge, c_int64_t), [c_n_charges], present(n_charges), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_strengths_f64(plan=plan%handle, n_segments=0_c_int64_t, &
      n_particles=0_c_int64_t, n_charges=c_n_charges, charge=charge, memory=c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the targets; n = 0: none.
  subroutine wfmm_plan_set_targets_f32(plan, position, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_targets_f32(plan%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the targets; n = 0: none.
  subroutine wfmm_plan_set_targets_f64(plan, position, n, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_plan_set_targets_f64(plan%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity that segments and particles induce at the targets, and optionally its gradient.
  subroutine wfmm_plan_evaluate_f32(plan, velocity, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_float), intent(inout), contiguous :: velocity(:,:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_f32(plan%handle, velocity, gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity that segments and particles induce at the targets, and optionally its gradient.
  subroutine wfmm_plan_evaluate_f64(plan, velocity, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_double), intent(inout), contiguous :: velocity(:,:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_f64(plan%handle, velocity, gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the potential of the charges at the targets, and optionally its gradient.
  subroutine wfmm_plan_evaluate_potential_f32(plan, potential, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_float), intent(inout), contiguous :: potential(:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("potential", shape(potential, c_int64_t), [c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, c_n_targets], .true., &
      status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_potential_f32(plan%handle, potential, gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the potential of the charges at the targets, and optionally its gradient.
  subroutine wfmm_plan_evaluate_potential_f64(plan, potential, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_double), intent(inout), contiguous :: potential(:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("potential", shape(potential, c_int64_t), [c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, c_n_targets], .true., &
      status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_potential_f64(plan%handle, potential, gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Measures the error of the field that was evaluated last at n_samples targets against the direct sum in double
  !> precision.
  subroutine wfmm_plan_check_f32(plan, n_samples, seed, out_relative_l2, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in) :: n_samples
    integer, intent(in) :: seed
    real(c_float), intent(inout) :: out_relative_l2
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_check_f32(plan%handle, int(n_samples, c_int64_t), int(seed, c_int64_t), out_relative_l2)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Measures the error of the field that was evaluated last at n_samples targets against the direct sum in double
  !> precision.
  subroutine wfmm_plan_check_f64(plan, n_samples, seed, out_relative_l2, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(in) :: n_samples
    integer, intent(in) :: seed
    real(c_double), intent(inout) :: out_relative_l2
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_check_f64(plan%handle, int(n_samples, c_int64_t), int(seed, c_int64_t), out_relative_l2)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Starts the evaluation that wfmm_plan_evaluate_* makes, and returns at once. The arrays must be contiguous, else the
  !> status is WFMM_ERR_SHAPE, and be target or asynchronous where they are declared.
  subroutine wfmm_plan_evaluate_async_f32(plan, velocity, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_float), intent(inout), target, asynchronous :: velocity(:,:)
    real(c_float), intent(inout), target, asynchronous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    type(c_ptr) :: c_velocity
    type(c_ptr) :: c_gradient
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_velocity = c_null_ptr
    if (size(velocity) > 0) c_velocity = c_loc(velocity(1,1))
    c_gradient = c_null_ptr
    if (present(gradient)) then
      if (size(gradient) > 0) c_gradient = c_loc(gradient(1,1,1))
    end if
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    call need_contiguous("velocity", is_contiguous(velocity), status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (present(gradient)) call need_contiguous("gradient", is_contiguous(gradient), status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_async_f32(plan%handle, c_velocity, c_gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Starts the evaluation that wfmm_plan_evaluate_* makes, and returns at once. The arrays must be contiguous, else the
  !> status is WFMM_ERR_SHAPE, and be target or asynchronous where they are declared.
  subroutine wfmm_plan_evaluate_async_f64(plan, velocity, gradient, memory, ierr)
    type(wfmm_plan), intent(in) :: plan
    real(c_double), intent(inout), target, asynchronous :: velocity(:,:)
    real(c_double), intent(inout), target, asynchronous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    type(c_ptr) :: c_velocity
    type(c_ptr) :: c_gradient
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = 0
    status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)
    c_velocity = c_null_ptr
    if (size(velocity) > 0) c_velocity = c_loc(velocity(1,1))
    c_gradient = c_null_ptr
    if (present(gradient)) then
      if (size(gradient) > 0) c_gradient = c_loc(gradient(1,1,1))
    end if
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    call need_contiguous("velocity", is_contiguous(velocity), status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (present(gradient)) call need_contiguous("gradient", is_contiguous(gradient), status)
    if (status == WFMM_OK) status = c_wfmm_plan_evaluate_async_f64(plan%handle, c_velocity, c_gradient, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Waits for the evaluation that wfmm_plan_evaluate_async_* started and returns its status; 0 where none is under way.
  subroutine wfmm_plan_wait(plan, ierr)
    type(wfmm_plan), intent(in) :: plan
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_plan_wait(plan%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the CUDA stream (cudaStream_t, CUstream) on which the caller computes this plan's device arrays: an evaluation
  !> begins after the work that is queued on it when wfmm_plan_evaluate_* or wfmm_plan_evaluate_async_* is called
  !> (cudaStreamPerThread: on that of the calling thread).
  subroutine wfmm_plan_set_stream(plan, stream, ierr)
    type(wfmm_plan), intent(in) :: plan
    type(c_ptr), intent(in), optional :: stream
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_ptr) :: c_stream

    status = WFMM_OK
    c_stream = c_null_ptr
    if (present(stream)) c_stream = stream
    status = c_wfmm_plan_set_stream(plan%handle, c_stream)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Page-locks the caller's memory at array, bytes long, so that results are copied from the device straight into it.
  subroutine wfmm_session_register(session, array, bytes, ierr)
    type(wfmm_session), intent(in) :: session
    type(c_ptr), intent(in) :: array
    integer(c_int64_t), intent(in) :: bytes
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_session_register(session%handle, array, bytes)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Unlocks memory that wfmm_session_register has locked.
  subroutine wfmm_session_unregister(session, array, ierr)
    type(wfmm_session), intent(in) :: session
    type(c_ptr), intent(in) :: array
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_session_unregister(session%handle, array)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory.
  subroutine wfmm_induce_segments_f32(points, connectivity, circulation, target, velocity, core_radius, options, &
    gradient, n_points, n, n_targets, ierr)
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_float), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_float), intent(inout), contiguous :: velocity(:,:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_segments_f32(c_n_points, points, c_n, c_ld, connectivity, &
      circulation, core_radius, c_n_targets, target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory. With point
  !> numbers of 64 bits, which are converted: the arrays must be in host memory.
  subroutine wfmm_induce_segments_i64_f32(points, connectivity, circulation, target, velocity, core_radius, &
    options, gradient, n_points, n, n_targets, ierr)
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_float), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_float), intent(inout), contiguous :: velocity(:,:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, int(WFMM_MEMORY_HOST, c_int32_t), c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_segments_f32(c_n_points, points, c_n, c_ld, c_connectivity, &
      circulation, core_radius, c_n_targets, target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory.
  subroutine wfmm_induce_segments_f64(points, connectivity, circulation, target, velocity, core_radius, options, &
    gradient, n_points, n, n_targets, ierr)
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_double), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_double), intent(inout), contiguous :: velocity(:,:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_segments_f64(c_n_points, points, c_n, c_ld, connectivity, &
      circulation, core_radius, c_n_targets, target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of straight vortex segments at the targets in one call; all arrays in host memory. With point
  !> numbers of 64 bits, which are converted: the arrays must be in host memory.
  subroutine wfmm_induce_segments_i64_f64(points, connectivity, circulation, target, velocity, core_radius, &
    options, gradient, n_points, n, n_targets, ierr)
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_double), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_double), intent(inout), contiguous :: velocity(:,:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, int(WFMM_MEMORY_HOST, c_int32_t), c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_segments_f64(c_n_points, points, c_n, c_ld, c_connectivity, &
      circulation, core_radius, c_n_targets, target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of vortex particles at the targets in one call; all arrays in host memory.
  subroutine wfmm_induce_particles_f32(position, strength, target, velocity, core_radius, options, gradient, n, &
    n_targets, ierr)
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous :: strength(:,:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_float), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_float), intent(inout), contiguous :: velocity(:,:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_particles_f32(c_n, position, strength, core_radius, c_n_targets, &
      target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of vortex particles at the targets in one call; all arrays in host memory.
  subroutine wfmm_induce_particles_f64(position, strength, target, velocity, core_radius, options, gradient, n, &
    n_targets, ierr)
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous :: strength(:,:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: n_targets
    real(c_double), intent(in), contiguous :: target(:,:)
    type(wfmm_plan_options), intent(in), optional :: options
    real(c_double), intent(inout), contiguous :: velocity(:,:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_n_targets
    type(wfmm_plan_options) :: c_options

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    if (present(options)) c_options = options
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_induce_particles_f64(c_n, position, strength, core_radius, c_n_targets, &
      target, c_options, velocity, gradient)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills options with the defaults.
  subroutine wfmm_flow_options_init(options, ierr)
    type(wfmm_flow_options), intent(out) :: options
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_options_init(options, int(options%struct_size, c_size_t))
    if (status == WFMM_OK) options = wfmm_flow_options()
    call wfmm_finish(status, ierr)
  end subroutine

  !> Makes a flow without elements at time 0.
  subroutine wfmm_flow_create(flow, session, plan_options, options, ierr)
    type(wfmm_session), intent(in), optional :: session
    type(wfmm_plan_options), intent(in), optional :: plan_options
    type(wfmm_flow_options), intent(in), optional :: options
    type(wfmm_flow), intent(inout) :: flow
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_ptr) :: c_session
    type(wfmm_plan_options) :: c_plan_options
    type(wfmm_flow_options) :: c_options

    status = WFMM_OK
    c_session = c_null_ptr
    if (present(session)) c_session = session%handle
    if (present(plan_options)) c_plan_options = plan_options
    if (present(options)) c_options = options
    if (present(session)) call need_handle("session", c_session, status)
    if (status == WFMM_OK) status = c_wfmm_flow_create(c_session, c_plan_options, c_options, flow%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Removes elements of a kind by identity; the others keep their order.
  subroutine wfmm_flow_remove(flow, kind, identity, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: identity(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(identity, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("identity", shape(identity, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_remove(flow%handle, int(kind, c_int32_t), c_n, identity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Removes the elements of a kind that a mask names; the others keep their order.
  subroutine wfmm_flow_remove_mask(flow, kind, mask, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in), optional :: n
    integer(c_int8_t), intent(in), contiguous :: mask(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(mask, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("mask", shape(mask, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_remove_mask(flow%handle, int(kind, c_int32_t), c_n, mask, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the velocity far away, which is added everywhere; default 0.
  subroutine wfmm_flow_set_free_stream(flow, velocity, ierr)
    type(wfmm_flow), intent(in) :: flow
    real(c_double), intent(in), contiguous :: velocity(:)
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_free_stream(flow%handle, velocity)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets a function of the host that adds its own velocity at all points of every evaluation; see wfmm_velocity_fn.
  subroutine wfmm_flow_set_velocity_callback(flow, callback, user, ierr)
    type(wfmm_flow), intent(in) :: flow
    type(c_funptr), intent(in), optional :: callback
    type(c_ptr), intent(in), optional :: user
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_funptr) :: c_callback
    type(c_ptr) :: c_user

    status = WFMM_OK
    c_callback = c_null_funptr
    if (present(callback)) c_callback = callback
    c_user = c_null_ptr
    if (present(user)) c_user = user
    status = c_wfmm_flow_set_velocity_callback(flow%handle, c_callback, c_user)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Moves everything by steps steps of dt each.
  subroutine wfmm_flow_advance(flow, dt, steps, ierr)
    type(wfmm_flow), intent(in) :: flow
    real(c_double), intent(in) :: dt
    integer, intent(in) :: steps
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_advance(flow%handle, dt, int(steps, c_int64_t))
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the time of the flow and the number of steps.
  subroutine wfmm_flow_time(flow, time, step, ierr)
    type(wfmm_flow), intent(in) :: flow
    real(c_double), intent(inout), optional :: time
    integer(c_int64_t), intent(inout), optional :: step
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_time(flow%handle, time, step)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the numbers of elements of a kind and of their points.
  subroutine wfmm_flow_counts(flow, kind, elements, points, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer(c_int64_t), intent(inout), optional :: elements
    integer(c_int64_t), intent(inout), optional :: points
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_counts(flow%handle, int(kind, c_int32_t), elements, points)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the point numbers of filaments or bound segments, which wfmm_flow_remove and splitting change.
  subroutine wfmm_flow_get_connectivity(flow, kind, connectivity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in), optional :: capacity
    integer(c_int32_t), intent(inout), contiguous :: connectivity(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(connectivity, 2, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("connectivity", shape(connectivity, c_int64_t), [2_c_int64_t, c_capacity], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_connectivity(flow%handle, int(kind, c_int32_t), c_capacity, &
      connectivity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns the point numbers of filaments or bound segments, which wfmm_flow_remove and splitting change. With point
  !> numbers of 64 bits, which are converted: the arrays must be in host memory.
  subroutine wfmm_flow_get_connectivity_i64(flow, kind, connectivity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in), optional :: capacity
    integer(c_int64_t), intent(inout), contiguous :: connectivity(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(connectivity, 2, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("connectivity", shape(connectivity, c_int64_t), [2_c_int64_t, c_capacity], .true., status)
    call room("connectivity", 2_c_int64_t, c_capacity, c_memory, c_connectivity, status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_connectivity(flow%handle, int(kind, c_int32_t), c_capacity, &
      c_connectivity, c_memory)
    call widen(c_connectivity, connectivity, status)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills diagnostics with zeros and its size.
  subroutine wfmm_diagnostics_init(diagnostics, ierr)
    type(wfmm_diagnostics), intent(inout) :: diagnostics
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_diagnostics_init(diagnostics, int(diagnostics%struct_size, c_size_t))
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes invariants and norms of the present state, on a distributed session of all ranks' elements together:
  !> impulses, energy, enstrophy, largest velocity.
  subroutine wfmm_flow_diagnostics(flow, diagnostics, ierr)
    type(wfmm_flow), intent(in) :: flow
    type(wfmm_diagnostics), intent(inout) :: diagnostics
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_diagnostics(flow%handle, diagnostics)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Writes the whole flow to a file, which wfmm_flow_load reads: an .npz container of NumPy's arrays, its members are
  !> in the manual.
  subroutine wfmm_flow_save(flow, path, ierr)
    type(wfmm_flow), intent(in) :: flow
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_save(flow%handle, trim(path)//c_null_char)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Makes a flow from a file of wfmm_flow_save, with its options: wfmm_flow_get_options tells them, and index_base is
  !> that of the program that saved it.
  subroutine wfmm_flow_load(path, flow, session, ierr)
    type(wfmm_session), intent(in), optional :: session
    character(len=*), intent(in) :: path
    type(wfmm_flow), intent(inout) :: flow
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(c_ptr) :: c_session

    status = WFMM_OK
    c_session = c_null_ptr
    if (present(session)) c_session = session%handle
    if (present(session)) call need_handle("session", c_session, status)
    if (status == WFMM_OK) status = c_wfmm_flow_load(c_session, trim(path)//c_null_char, flow%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills in the options that a flow was made with, those of a loaded flow as the file has them.
  subroutine wfmm_flow_get_options(flow, plan_options, options, ierr)
    type(wfmm_flow), intent(in) :: flow
    type(wfmm_plan_options), intent(inout), optional :: plan_options
    type(wfmm_flow_options), intent(inout), optional :: options
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_get_options(flow%handle, plan_options, options)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills a report of the last evaluation of the flow's sums, as wfmm_plan_report; host_bytes includes the state.
  subroutine wfmm_flow_report(flow, report, ierr)
    type(wfmm_flow), intent(in) :: flow
    type(wfmm_report), intent(inout) :: report
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_report(flow%handle, report)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Ends a flow.
  subroutine wfmm_flow_destroy(flow, ierr)
    type(wfmm_flow), intent(inout) :: flow
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_flow_destroy(flow%handle)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex particles, in place of those that were there; n = 0 removes them.
  subroutine wfmm_flow_set_particles_f32(flow, position, strength, core_radius, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous :: strength(:,:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_particles_f32(flow%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex particles, in place of those that were there; n = 0 removes them.
  subroutine wfmm_flow_set_particles_f64(flow, position, strength, core_radius, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous :: strength(:,:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_particles_f64(flow%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex particles.
  subroutine wfmm_flow_add_particles_f32(flow, position, strength, core_radius, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous :: strength(:,:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_particles_f32(flow%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex particles.
  subroutine wfmm_flow_add_particles_f64(flow, position, strength, core_radius, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous :: strength(:,:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("strength", shape(strength, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_particles_f64(flow%handle, c_n, position, strength, &
      core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex filaments: segments whose points move; n = 0 removes them.
  subroutine wfmm_flow_set_filaments_f32(flow, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_filaments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex filaments: segments whose points move; n = 0 removes them. With point numbers of 64 bits, which are
  !> converted: the arrays must be in host memory.
  subroutine wfmm_flow_set_filaments_i64_f32(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_filaments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex filaments: segments whose points move; n = 0 removes them.
  subroutine wfmm_flow_set_filaments_f64(flow, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_filaments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the vortex filaments: segments whose points move; n = 0 removes them. With point numbers of 64 bits, which are
  !> converted: the arrays must be in host memory.
  subroutine wfmm_flow_set_filaments_i64_f64(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_filaments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex filaments with points of their own.
  subroutine wfmm_flow_add_filaments_f32(flow, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_filaments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex filaments with points of their own. With point numbers of 64 bits, which are converted: the arrays
  !> must be in host memory.
  subroutine wfmm_flow_add_filaments_i64_f32(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_filaments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex filaments with points of their own.
  subroutine wfmm_flow_add_filaments_f64(flow, points, connectivity, circulation, core_radius, n_points, n, memory, &
    ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_filaments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends vortex filaments with points of their own. With point numbers of 64 bits, which are converted: the arrays
  !> must be in host memory.
  subroutine wfmm_flow_add_filaments_i64_f64(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_filaments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the segments that induce and do not move; n = 0 removes them.
  subroutine wfmm_flow_set_bound_segments_f32(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_bound_segments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the segments that induce and do not move; n = 0 removes them. With point numbers of 64 bits, which are
  !> converted: the arrays must be in host memory.
  subroutine wfmm_flow_set_bound_segments_i64_f32(flow, points, connectivity, circulation, core_radius, n_points, &
    n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_float), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_float), intent(in), contiguous :: circulation(:)
    real(c_float), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_bound_segments_f32(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the segments that induce and do not move; n = 0 removes them.
  subroutine wfmm_flow_set_bound_segments_f64(flow, points, connectivity, circulation, core_radius, n_points, n, &
    memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int32_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_bound_segments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the segments that induce and do not move; n = 0 removes them. With point numbers of 64 bits, which are
  !> converted: the arrays must be in host memory.
  subroutine wfmm_flow_set_bound_segments_i64_f64(flow, points, connectivity, circulation, core_radius, n_points, &
    n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_points
    real(c_double), intent(in), contiguous :: points(:,:)
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: connectivity(:,:)
    real(c_double), intent(in), contiguous :: circulation(:)
    real(c_double), intent(in), contiguous, optional :: core_radius(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_points
    integer(c_int64_t) :: c_n
    integer(c_int64_t) :: c_ld
    integer(c_int32_t), allocatable :: c_connectivity(:,:)
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_points = size(points, 2, c_int64_t)
    if (present(n_points)) c_n_points = int(n_points, c_int64_t)
    c_n = size(connectivity, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_ld = size(connectivity, 1, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("points", shape(points, c_int64_t), [3_c_int64_t, c_n_points], present(n_points), status)
    call need("connectivity", shape(connectivity, c_int64_t), [c_ld, c_n], present(n), status)
    call narrow("connectivity", connectivity, c_n, c_memory, c_connectivity, status)
    call need("circulation", shape(circulation, c_int64_t), [c_n], present(n), status)
    if (present(core_radius)) call need("core_radius", shape(core_radius, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_bound_segments_f64(flow%handle, c_n_points, points, c_n, c_ld, &
      c_connectivity, circulation, core_radius, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the points that move with the fluid; n = 0 removes them.
  subroutine wfmm_flow_set_tracers_f32(flow, position, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_tracers_f32(flow%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the points that move with the fluid; n = 0 removes them.
  subroutine wfmm_flow_set_tracers_f64(flow, position, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_tracers_f64(flow%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends points that move with the fluid.
  subroutine wfmm_flow_add_tracers_f32(flow, position, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_tracers_f32(flow%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends points that move with the fluid.
  subroutine wfmm_flow_add_tracers_f64(flow, position, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_tracers_f64(flow%handle, c_n, position, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the dust: parcels with inertia; n = 0 removes it.
  subroutine wfmm_flow_set_dust_f32(flow, position, diameter, density, velocity, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous, optional :: velocity(:,:)
    real(c_float), intent(in), contiguous :: diameter(:)
    real(c_float), intent(in), contiguous :: density(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(velocity)) call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("diameter", shape(diameter, c_int64_t), [c_n], present(n), status)
    call need("density", shape(density, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_dust_f32(flow%handle, c_n, position, velocity, diameter, &
      density, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Sets the dust: parcels with inertia; n = 0 removes it.
  subroutine wfmm_flow_set_dust_f64(flow, position, diameter, density, velocity, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous, optional :: velocity(:,:)
    real(c_double), intent(in), contiguous :: diameter(:)
    real(c_double), intent(in), contiguous :: density(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(velocity)) call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("diameter", shape(diameter, c_int64_t), [c_n], present(n), status)
    call need("density", shape(density, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_set_dust_f64(flow%handle, c_n, position, velocity, diameter, &
      density, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends dust: parcels with inertia.
  subroutine wfmm_flow_add_dust_f32(flow, position, diameter, density, velocity, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_float), intent(in), contiguous :: position(:,:)
    real(c_float), intent(in), contiguous, optional :: velocity(:,:)
    real(c_float), intent(in), contiguous :: diameter(:)
    real(c_float), intent(in), contiguous :: density(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(velocity)) call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("diameter", shape(diameter, c_int64_t), [c_n], present(n), status)
    call need("density", shape(density, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_dust_f32(flow%handle, c_n, position, velocity, diameter, &
      density, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Appends dust: parcels with inertia.
  subroutine wfmm_flow_add_dust_f64(flow, position, diameter, density, velocity, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n
    real(c_double), intent(in), contiguous :: position(:,:)
    real(c_double), intent(in), contiguous, optional :: velocity(:,:)
    real(c_double), intent(in), contiguous :: diameter(:)
    real(c_double), intent(in), contiguous :: density(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(position, 2, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("position", shape(position, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    if (present(velocity)) call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n], present(n), status)
    call need("diameter", shape(diameter, c_int64_t), [c_n], present(n), status)
    call need("density", shape(density, c_int64_t), [c_n], present(n), status)
    if (status == WFMM_OK) status = c_wfmm_flow_add_dust_f64(flow%handle, c_n, position, velocity, diameter, &
      density, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of all elements of a kind, and their identities.
  subroutine wfmm_flow_get_f32(flow, kind, quantity, values, identity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: capacity
    real(c_float), intent(inout), contiguous :: values(:,:)
    integer(c_int64_t), intent(inout), contiguous, optional :: identity(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(values, 2, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("values", shape(values, c_int64_t), [3_c_int64_t, c_capacity], .true., status)
    call need_width(quantity, 3, status)
    if (present(identity)) call need("identity", shape(identity, c_int64_t), [c_capacity], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_f32(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_capacity, values, identity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of all elements of a kind, and their identities.
  subroutine wfmm_flow_get_scalars_f32(flow, kind, quantity, values, identity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: capacity
    real(c_float), intent(inout), contiguous :: values(:)
    integer(c_int64_t), intent(inout), contiguous, optional :: identity(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(values, 1, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("values", shape(values, c_int64_t), [c_capacity], .true., status)
    call need_width(quantity, 1, status)
    if (present(identity)) call need("identity", shape(identity, c_int64_t), [c_capacity], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_f32(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_capacity, values, identity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of all elements of a kind, and their identities.
  subroutine wfmm_flow_get_f64(flow, kind, quantity, values, identity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: capacity
    real(c_double), intent(inout), contiguous :: values(:,:)
    integer(c_int64_t), intent(inout), contiguous, optional :: identity(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(values, 2, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("values", shape(values, c_int64_t), [3_c_int64_t, c_capacity], .true., status)
    call need_width(quantity, 3, status)
    if (present(identity)) call need("identity", shape(identity, c_int64_t), [c_capacity], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_f64(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_capacity, values, identity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of all elements of a kind, and their identities.
  subroutine wfmm_flow_get_scalars_f64(flow, kind, quantity, values, identity, capacity, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: capacity
    real(c_double), intent(inout), contiguous :: values(:)
    integer(c_int64_t), intent(inout), contiguous, optional :: identity(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_capacity
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_capacity = size(values, 1, c_int64_t)
    if (present(capacity)) c_capacity = int(capacity, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("values", shape(values, c_int64_t), [c_capacity], .true., status)
    call need_width(quantity, 1, status)
    if (present(identity)) call need("identity", shape(identity, c_int64_t), [c_capacity], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_f64(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_capacity, values, identity, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of the elements of a kind with these identities.
  subroutine wfmm_flow_get_selected_f32(flow, kind, quantity, identity, values, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: identity(:)
    real(c_float), intent(inout), contiguous :: values(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(identity, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("identity", shape(identity, c_int64_t), [c_n], present(n), status)
    call need("values", shape(values, c_int64_t), [3_c_int64_t, c_n], .true., status)
    call need_width(quantity, 3, status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_selected_f32(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_n, identity, values, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of the elements of a kind with these identities.
  subroutine wfmm_flow_get_selected_scalars_f32(flow, kind, quantity, identity, values, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: identity(:)
    real(c_float), intent(inout), contiguous :: values(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(identity, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("identity", shape(identity, c_int64_t), [c_n], present(n), status)
    call need("values", shape(values, c_int64_t), [c_n], .true., status)
    call need_width(quantity, 1, status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_selected_f32(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_n, identity, values, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of the elements of a kind with these identities.
  subroutine wfmm_flow_get_selected_f64(flow, kind, quantity, identity, values, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: identity(:)
    real(c_double), intent(inout), contiguous :: values(:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(identity, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("identity", shape(identity, c_int64_t), [c_n], present(n), status)
    call need("values", shape(values, c_int64_t), [3_c_int64_t, c_n], .true., status)
    call need_width(quantity, 3, status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_selected_f64(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_n, identity, values, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Returns a quantity of the elements of a kind with these identities.
  subroutine wfmm_flow_get_selected_scalars_f64(flow, kind, quantity, identity, values, n, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: kind
    integer, intent(in) :: quantity
    integer, intent(in), optional :: n
    integer(c_int64_t), intent(in), contiguous :: identity(:)
    real(c_double), intent(inout), contiguous :: values(:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n = size(identity, 1, c_int64_t)
    if (present(n)) c_n = int(n, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("identity", shape(identity, c_int64_t), [c_n], present(n), status)
    call need("values", shape(values, c_int64_t), [c_n], .true., status)
    call need_width(quantity, 1, status)
    if (status == WFMM_OK) status = c_wfmm_flow_get_selected_f64(flow%handle, int(kind, c_int32_t), int(quantity, &
      c_int32_t), c_n, identity, values, c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of the fluid at any points at the present time.
  subroutine wfmm_flow_velocity_f32(flow, target, velocity, gradient, n_targets, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_targets
    real(c_float), intent(in), contiguous :: target(:,:)
    real(c_float), intent(inout), contiguous :: velocity(:,:)
    real(c_float), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_velocity_f32(flow%handle, c_n_targets, target, velocity, gradient, &
      c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Computes the velocity of the fluid at any points at the present time.
  subroutine wfmm_flow_velocity_f64(flow, target, velocity, gradient, n_targets, memory, ierr)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in), optional :: n_targets
    real(c_double), intent(in), contiguous :: target(:,:)
    real(c_double), intent(inout), contiguous :: velocity(:,:)
    real(c_double), intent(inout), contiguous, optional :: gradient(:,:,:)
    integer, intent(in), optional :: memory
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    integer(c_int64_t) :: c_n_targets
    integer(c_int32_t) :: c_memory

    status = WFMM_OK
    c_n_targets = size(target, 2, c_int64_t)
    if (present(n_targets)) c_n_targets = int(n_targets, c_int64_t)
    c_memory = WFMM_MEMORY_HOST
    if (present(memory)) c_memory = int(memory, c_int32_t)
    call need("target", shape(target, c_int64_t), [3_c_int64_t, c_n_targets], present(n_targets), status)
    call need("velocity", shape(velocity, c_int64_t), [3_c_int64_t, c_n_targets], .true., status)
    if (present(gradient)) call need("gradient", shape(gradient, c_int64_t), [3_c_int64_t, 3_c_int64_t, &
      c_n_targets], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_velocity_f64(flow%handle, c_n_targets, target, velocity, gradient, &
      c_memory)
    call wfmm_finish(status, ierr)
  end subroutine

  !> Fills camera with the defaults.
  subroutine wfmm_camera_init(camera, ierr)
    type(wfmm_camera), intent(out) :: camera
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status

    status = WFMM_OK
    status = c_wfmm_camera_init(camera, int(camera%struct_size, c_size_t))
    if (status == WFMM_OK) camera = wfmm_camera()
    call wfmm_finish(status, ierr)
  end subroutine

  !> Draws the flow as a camera sees it: segments as lines that hide what is behind them, tracers, dust and particles as
  !> points, whose number gives the opacity.
  subroutine wfmm_flow_picture(flow, width, height, camera, rgba, png_path, ierr)
    type(wfmm_flow), intent(in) :: flow
    type(wfmm_camera), intent(in), optional :: camera
    integer, intent(in) :: width
    integer, intent(in) :: height
    integer(c_int8_t), intent(inout), contiguous, optional :: rgba(:,:,:)
    character(len=*), intent(in), optional :: png_path
    integer, intent(out), optional :: ierr
    integer(c_int32_t) :: status
    type(wfmm_camera) :: c_camera
    character(kind=c_char, len=:), allocatable :: c_png_path

    status = WFMM_OK
    if (present(camera)) c_camera = camera
    if (present(png_path)) c_png_path = trim(png_path)//c_null_char
    if (present(rgba)) call need("rgba", shape(rgba, c_int64_t), [4_c_int64_t, int(width, c_int64_t), int(height, &
      c_int64_t)], .true., status)
    if (status == WFMM_OK) status = c_wfmm_flow_picture(flow%handle, c_camera, int(width, c_int32_t), int(height, &
      c_int32_t), rgba, c_png_path)
    call wfmm_finish(status, ierr)
  end subroutine
end module wakefmm
