//! Options: the C structs with their defaults, the constants, and the checked form that the rest of the crate sees.
//!
//! Enters: what a caller filled in, any numbers at all. Leaves: `PlanOptions` and `SessionOptions`, or an error that names
//! the field, its value and what would be accepted.

use crate::error::{
    Error, Result, WFMM_ERR_CONSTANT, WFMM_ERR_NOT_FINITE, WFMM_ERR_TOLERANCE, WFMM_ERR_UNSUPPORTED, WFMM_ERR_VALUE,
    number,
};

codes! {
    /// How a core regularizes its element: `_RANKINE` to `_OFFSET` for segments, `_GAUSS_ERF` to `_POLYNOMIAL` for particles,
    /// `_NONE` for both. A radius of 0 means the singular kernel for that element. Full references: docs/theory.md.
    enum Regularization {
        /// Singular kernel. Segments: F = 1. Particles: S = 1/r^3.
        None = 0 => WFMM_REG_NONE,
        /// Segments: F = min(1, rho^2/c^2).
        Rankine = 1 => WFMM_REG_RANKINE,
        /// Segments: F = 1 - exp(-1.25643 rho^2/c^2); the velocity of a long segment is largest at rho = c.
        LambOseen = 2 => WFMM_REG_LAMB_OSEEN,
        /// Segments: F = rho^2/sqrt(c^4 + rho^4) (Vatistas et al. 1991, n = 2); the default of segments.
        Vatistas = 3 => WFMM_REG_VATISTAS,
        /// Segments: F = rho^2/(c^2 + rho^2) (Scully 1975; Vatistas et al. 1991, n = 1).
        Scully = 4 => WFMM_REG_SCULLY,
        /// Segments: F = 1, and D + c^2 |P2-P1|^2 in place of D (van Garrel 2003).
        Offset = 5 => WFMM_REG_OFFSET,
        /// Particles: S = (erf(q/sqrt 2) - sqrt(2/pi) q exp(-q^2/2))/r^3, q = r/c (Winckelmans and Leonard 1993); the default of
        /// particles.
        GaussErf = 6 => WFMM_REG_GAUSS_ERF,
        /// Particles: S = (1 - exp(-r^3/c^3))/r^3 (OpenFAST's OLAF).
        Exponential = 7 => WFMM_REG_EXPONENTIAL,
        /// Particles: S = 1/sqrt(r^6 + c^6) (OpenFAST's OLAF).
        Compact = 8 => WFMM_REG_COMPACT,
        /// Particles: S = (r^2 + c^2)^(-3/2) (Rosenhead 1930).
        Rosenhead = 9 => WFMM_REG_ROSENHEAD,
        /// Particles: S = (r^2 + 5/2 c^2)(r^2 + c^2)^(-5/2) (Winckelmans and Leonard 1993).
        Winckelmans = 10 => WFMM_REG_WINCKELMANS,
        /// Particles: S = K/r^3, K = (r/c)^2 for r <= c, else 1 (Hu et al. 2013, eq. 29).
        Polynomial = 11 => WFMM_REG_POLYNOMIAL,
    }

    /// How the sums are computed.
    enum Method {
        /// Direct sum, fast multipole method or treecode, whichever the cost model expects to be fastest. On a GPU
        /// it does not consider the treecode.
        Auto = 0 => WFMM_METHOD_AUTO,
        /// Every pair.
        Direct = 1 => WFMM_METHOD_DIRECT,
        /// The fast multipole method. A GPU sums directly what has no FMM there: WFMM_REG_OFFSET, and tolerances that
        /// its orders do not reach. `method` of the report has what was done.
        Fmm = 2 => WFMM_METHOD_FMM,
        /// Multipoles evaluated at the targets, without local expansions. A GPU sums directly what has no FMM there.
        /// WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with a period.
        Treecode = 3 => WFMM_METHOD_TREECODE,
    }

    /// What the far field is expanded in.
    enum Expansion {
        /// Solid harmonics.
        Harmonics = 0 => WFMM_EXPANSION_HARMONICS,
        /// Strengths of particles on a sphere around each cell. Slower than harmonics; for comparison. By the FMM, with
        /// orders up to 16 (in single precision on a GPU 11). WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create with
        /// the treecode or a period, and by evaluate where the tolerance is missed.
        PseudoParticles = 1 => WFMM_EXPANSION_PSEUDO_PARTICLES,
    }

    /// Precision of the computation.
    enum Precision {
        /// That of the arrays: double if one of the arrays is double, else single, but double at tolerances below 1e-4 on a CPU
        /// (unless an FMM or treecode sums velocities of particles alone). An FMM of double arrays (on the CPU also a
        /// treecode) computes velocities in single precision where that keeps the tolerance (1e-4 or more, of particles
        /// alone and on a GPU 1e-6 or more) and is faster, unless WFMM_FLAG_REPRODUCIBLE is set; `precision` of the report says so.
        Arrays = 0 => WFMM_PRECISION_ARRAYS,
        /// Single. Where its range or digits are not enough (a point far away, cores much larger than the extent of the
        /// elements, on a CPU a tolerance below 1e-4, unless an FMM or treecode sums velocities of particles alone) the computation
        /// is done in double. A warning and `precision` of the report say so.
        F32 = 1 => WFMM_PRECISION_F32,
        /// Double.
        F64 = 2 => WFMM_PRECISION_F64,
    }

    /// Where the sums are computed.
    enum BackendKind {
        /// A CUDA device where there is one and the problem has at least 200,000 pairs or arrays in device memory, else the CPU.
        Auto = 0 => WFMM_BACKEND_AUTO,
        /// The CPU.
        Cpu = 1 => WFMM_BACKEND_CPU,
        /// A CUDA device; an error where there is none.
        Cuda = 2 => WFMM_BACKEND_CUDA,
    }

    /// Where the arrays of a call are.
    enum Memory {
        /// Host memory: inputs are copied.
        Host = 0 => WFMM_MEMORY_HOST,
        /// Device memory: a plan borrows inputs until the next `set_*` or `destroy`; a flow copies them.
        Device = 1 => WFMM_MEMORY_DEVICE,
        /// The driver is asked; without a device: host.
        Auto = 2 => WFMM_MEMORY_AUTO,
    }

    /// How much is logged.
    enum LogLevel {
        /// Nothing.
        Off = 0 => WFMM_LOG_OFF,
        /// Errors.
        Error = 1 => WFMM_LOG_ERROR,
        /// Errors and fallbacks. A fallback is a computation in another way than requested, for example on the CPU or
        /// in double precision.
        Warn = 2 => WFMM_LOG_WARN,
        /// The above, and one line per plan with its recipe and the seconds of each pass.
        Info = 3 => WFMM_LOG_INFO,
        /// The above, and details.
        Debug = 4 => WFMM_LOG_DEBUG,
    }
}

/// `flags` of a plan: results are added to the output arrays instead of overwriting them.
pub const WFMM_FLAG_ACCUMULATE: u64 = 1;
/// `flags` of a plan: the same inputs give the same bits, whatever the number of threads, the load of the machine and
/// what the plan or the process did before. This holds for one instruction set and one model of GPU. On a distributed session
/// on CPUs fields agree to rounding whatever the number of ranks; by expansions each rank then holds all sources and targets.
pub const WFMM_FLAG_REPRODUCIBLE: u64 = 2;
/// `flags` of a plan on a distributed session: each rank computes with its own sources and targets, as the host has
/// divided them. Without the flag they are divided anew, by the work of the evaluation before. No effect on other
/// sessions, nor with WFMM_FLAG_REPRODUCIBLE on CPUs.
pub const WFMM_FLAG_HOST_PARTITION: u64 = 4;

/// The smallest tolerance that single precision is promised to hold.
pub const WFMM_TOLERANCE_MIN_F32: f64 = 5e-6;
/// The smallest tolerance that double precision is promised to hold.
pub const WFMM_TOLERANCE_MIN_F64: f64 = 5e-12;

/// Larger tolerances count as this: a velocity field with a larger error is of no use.
pub const TOLERANCE_MAX: f64 = 0.1;
/// The highest order of expansions that may be requested.
pub const WFMM_ORDER_MAX: i32 = 40;
/// The same of pseudo-particles.
const PSEUDO_ORDER_MAX: i32 = 16;
/// Periods beyond these are taken for mistakes: their cubes would leave the range of numbers.
const SHORTEST_PERIOD: f64 = 1e-100;
const LONGEST_PERIOD: f64 = 1e100;
/// Largest ratio of two periods. The sums over all images (`math::lattice`) take up to half a second there, and positions are rounded to some
/// 1e-9 of the shorter period.
const MOST_UNEQUAL: f64 = 1e6;
/// More threads than this are taken for a mistake.
pub const THREADS_MAX: i32 = 4096;
/// So are more devices.
pub const DEVICES_MAX: i32 = 64;

/// Options of a session. Fill with `wfmm_session_options_init` and change what is wanted.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_session_options {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_BACKEND_*`; default AUTO.
    pub backend: i32,
    /// Number of the device; -1, the default, is the best one.
    pub device: i32,
    /// Number of host threads, up to 4096. 0, the default: the number in the environment variable WAKEFMM_NUM_THREADS,
    /// else the first number in OMP_NUM_THREADS, else all that the process may use (its CPU affinity and the CPU quota
    /// of its control group). A variable without a number is ignored, with one warning. The same holds for the default
    /// session.
    pub threads: i32,
    /// No flag is defined yet: 0.
    pub flags: u64,
    /// How many device numbers `devices` has, up to 64; default 0.
    pub n_devices: i32,
    /// 0.
    pub reserved: i32,
    /// Numbers of the CUDA devices that compute together, read while the session is made; the default, NULL: `device` alone.
    /// Every device has all sources and a part of the targets. Arrays in device memory are those of the first one, which
    /// also holds the state of flows. A number may stand more than once. Not for distributed sessions, of which each rank
    /// has one device: WFMM_ERR_UNSUPPORTED. No effect with WFMM_BACKEND_CPU.
    pub devices: *const i32,
}

impl Default for wfmm_session_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            backend: WFMM_BACKEND_AUTO,
            device: -1,
            threads: 0,
            flags: 0,
            n_devices: 0,
            reserved: 0,
            devices: std::ptr::null(),
        }
    }
}

/// Options of a plan. Fill with `wfmm_plan_options_init` and change what is wanted.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_plan_options {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_METHOD_*`; default AUTO.
    pub method: i32,
    /// `WFMM_PRECISION_*` of the computation; default ARRAYS.
    pub precision: i32,
    /// Truncation order of the expansions, at most WFMM_ORDER_MAX. 0, the default: derived from the tolerance. On the
    /// CPU every expansion has this order, and pairs of cells that need a higher one are summed directly. On a GPU it
    /// is a lower bound, and the order is at most 16. In single precision it is at most 11, except for harmonics of
    /// vortices at tolerances below 1e-4 outside of boxes with three equal periods.
    pub order: i32,
    /// Largest number of elements in a leaf of the tree; 0, the default: chosen by the library. On a GPU values below 8
    /// count as 8, above 512 as 512.
    pub leaf_capacity: i32,
    /// `WFMM_REG_*` of segments; default VATISTAS.
    pub segment_regularization: i32,
    /// `WFMM_REG_*` of particles; default GAUSS_ERF.
    pub particle_regularization: i32,
    /// Number of the first point in connectivities, 0 or 1; default 0 in C, 1 in Fortran.
    pub index_base: i32,
    /// Largest relative L2 error of the velocity (or potential) over all targets, against the exact, regularized sum;
    /// default 1e-4. The error of gradients may be 30 times as large, relative to their own norm. A tolerance above 0.1
    /// counts as 0.1; `wfmm_plan_recipe` says so.
    pub tolerance: f64,
    /// Factor s of all sums; default 1/(4 pi). 1 gives sums without the factor.
    pub normalization: f64,
    /// Core radius where no array of radii is given, a length; default 0, the singular kernel. A plan with a regularization
    /// other than NONE and no radius above 0 logs a warning once and says so in its recipe.
    pub core_radius: f64,
    /// `WFMM_FLAG_*`, or-ed; default 0.
    pub flags: u64,
    /// Axis normal to an impermeable ground plane: 1 x, 2 y, 3 z; 0, the default: no plane. The images of all sources
    /// are included, with their cores. Images of charges have the same sign. Targets below the plane get the mirrored
    /// field. With a plane, velocity and gradient must both be in host memory, or both in device memory; on distributed
    /// sessions targets and outputs must be in host memory.
    pub plane_axis: i32,
    /// `WFMM_EXPANSION_*`; default HARMONICS.
    pub expansion: i32,
    /// Where the plane is on its axis, length units of the positions; default 0.
    pub plane_position: f64,
    /// Period along x, y and z, a length; 0, the default: open. One, two or three periodic axes make a tube, a slab or
    /// a box. The field is that of all images of all elements. Positions outside of a period are moved back into it,
    /// segments by their middles. In a box a uniform background balances a net strength, and the mean of velocity and
    /// potential is zero. In tubes and slabs images are summed symmetrically; charges must add to zero, else
    /// WFMM_ERR_VALUE. WFMM_ERR_UNSUPPORTED is returned by wfmm_plan_create for a period along the normal of a ground
    /// plane, and for a period more than 1e6 times as long as another; by evaluate for an extent of very many periods, for
    /// cores that reach through many periods, for particles of GAUSS_ERF in a box with cores above half of its longest
    /// period, and with WFMM_BACKEND_CUDA where sources with the near images of a tube, slab or box of unequal sides are
    /// too many, or for segments several periods long in a box with equal sides.
    pub period: [f64; 3],
}

impl Default for wfmm_plan_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            method: WFMM_METHOD_AUTO,
            precision: WFMM_PRECISION_ARRAYS,
            order: 0,
            leaf_capacity: 0,
            segment_regularization: WFMM_REG_VATISTAS,
            particle_regularization: WFMM_REG_GAUSS_ERF,
            index_base: 0,
            tolerance: 1e-4,
            normalization: 1.0 / (4.0 * std::f64::consts::PI),
            core_radius: 0.0,
            flags: 0,
            plane_axis: 0,
            expansion: WFMM_EXPANSION_HARMONICS,
            plane_position: 0.0,
            period: [0.0; 3],
        }
    }
}

/// What the caller asked of a session, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    pub backend: BackendKind,
    /// `None`: the best.
    pub device: Option<u32>,
    /// Devices that compute together, in place of `device`; none: that one alone.
    pub devices: Vec<u32>,
    /// 0: from the environment.
    pub threads: usize,
}

/// An impermeable ground plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plane {
    /// Normal: 0 x, 1 y, 2 z.
    pub axis: usize,
    /// Coordinate on that axis.
    pub position: f64,
}

impl Plane {
    /// The mirror image of a position.
    pub fn mirror(&self, mut x: [f64; 3]) -> [f64; 3] {
        x[self.axis] = self.image(x[self.axis]);
        x
    }

    /// The mirror image of a coordinate along the normal. Not `2 position - x`: that would leave the range of numbers too early.
    pub fn image(&self, x: f64) -> f64 {
        self.position + (self.position - x)
    }

    /// The strength of a vortex element's image, -R a: positions are mirrored, the sense of rotation is kept.
    pub fn mirror_strength(&self, a: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| -self.sign(i) * a[i])
    }

    /// -1 along the normal, else 1: what a component of a vector is multiplied by in the mirror.
    pub fn sign(&self, component: usize) -> f64 {
        if component == self.axis { -1.0 } else { 1.0 }
    }
}

/// What the caller asked of a plan, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    pub method: Method,
    pub precision: Precision,
    /// 0: from the tolerance.
    pub order: i32,
    /// 0: chosen.
    pub leaf_capacity: i32,
    pub segment_regularization: Regularization,
    pub particle_regularization: Regularization,
    pub index_base: i32,
    pub tolerance: f64,
    pub normalization: f64,
    pub core_radius: f64,
    pub accumulate: bool,
    pub reproducible: bool,
    pub host_partition: bool,
    pub plane: Option<Plane>,
    pub expansion: Expansion,
    /// Periods along x, y and z, 0 where open; `None`: open everywhere.
    pub period: Option<[f64; 3]>,
}

impl SessionOptions {
    /// How many numbers `devices` has.
    pub fn count_devices(o: &wfmm_session_options) -> Result<usize> {
        if !(0..=DEVICES_MAX).contains(&o.n_devices) {
            return value_error("n_devices", o.n_devices, "0 (device alone) to 64");
        }
        Ok(if o.devices.is_null() { 0 } else { o.n_devices as usize })
    }

    /// `devices`: those that `o.devices` points to.
    pub fn checked(o: &wfmm_session_options, devices: &[i32]) -> Result<Self> {
        let backend =
            code("backend", o.backend, BackendKind::from_code(o.backend), "WFMM_BACKEND_AUTO, _CPU or _CUDA")?;
        if o.device < -1 {
            return value_error("device", o.device, "-1 (the best) or a device number");
        }
        if !(0..=THREADS_MAX).contains(&o.threads) {
            return value_error("threads", o.threads, "0 (from the environment) to 4096");
        }
        no_unknown_flags(o.flags, 0)?;
        if o.reserved != 0 {
            return value_error("reserved", o.reserved, "0");
        }
        let number = |(k, &device): (usize, &i32)| {
            u32::try_from(device).or_else(|_| value_error(&format!("devices[{k}]"), device, "device numbers from 0 on"))
        };
        let devices = devices.iter().enumerate().map(number).collect::<Result<Vec<u32>>>()?;
        let device = u32::try_from(o.device).ok();
        Ok(Self { backend, device, devices, threads: o.threads as usize })
    }
}

impl PlanOptions {
    pub fn checked(o: &wfmm_plan_options) -> Result<Self> {
        let method =
            code("method", o.method, Method::from_code(o.method), "WFMM_METHOD_AUTO, _DIRECT, _FMM or _TREECODE")?;
        let precision =
            code("precision", o.precision, Precision::from_code(o.precision), "WFMM_PRECISION_ARRAYS, _F32 or _F64")?;
        if !(0..=WFMM_ORDER_MAX).contains(&o.order) {
            return value_error("order", o.order, "0 (from the tolerance) to WFMM_ORDER_MAX = 40");
        }
        if o.leaf_capacity < 0 {
            return value_error("leaf_capacity", o.leaf_capacity, "0 (chosen) or a positive number");
        }
        if !(0..=1).contains(&o.index_base) {
            return value_error("index_base", o.index_base, "0 or 1");
        }
        let checked = Self {
            method,
            precision,
            order: o.order,
            leaf_capacity: o.leaf_capacity,
            segment_regularization: segment_regularization(o.segment_regularization)?,
            particle_regularization: particle_regularization(o.particle_regularization)?,
            index_base: o.index_base,
            tolerance: tolerance(o.tolerance)?,
            normalization: finite("normalization", o.normalization)?,
            core_radius: radius(o.core_radius)?,
            accumulate: o.flags & WFMM_FLAG_ACCUMULATE != 0,
            reproducible: o.flags & WFMM_FLAG_REPRODUCIBLE != 0,
            host_partition: o.flags & WFMM_FLAG_HOST_PARTITION != 0,
            plane: plane(o)?,
            expansion: expansion(o)?,
            period: period(o)?,
        };
        no_unknown_flags(o.flags, WFMM_FLAG_ACCUMULATE | WFMM_FLAG_REPRODUCIBLE | WFMM_FLAG_HOST_PARTITION)?;
        check_tolerance(checked.tolerance, if precision == Precision::F32 { Precision::F32 } else { Precision::F64 })?;
        Ok(checked)
    }
}

/// Refuses a tolerance that `precision` (not ARRAYS) cannot hold.
pub fn check_tolerance(tolerance: f64, precision: Precision) -> Result<()> {
    let (least, name, hint) = match precision {
        Precision::F32 => {
            (WFMM_TOLERANCE_MIN_F32, "single", "; compute in double (precision = WFMM_PRECISION_F64, or double arrays)")
        }
        _ => (WFMM_TOLERANCE_MIN_F64, "double", ""),
    };
    if tolerance >= least {
        return Ok(());
    }
    Error::fail(
        WFMM_ERR_TOLERANCE,
        format!(
            "tolerance = {tolerance:e} is below what {name} precision can give; at least {least:e} is accepted{hint}"
        ),
    )
}

impl Regularization {
    /// Whether particles may have it; all others are of segments.
    pub fn is_for_particles(self) -> bool {
        use Regularization::*;
        matches!(self, None | GaussErf | Exponential | Compact | Rosenhead | Winckelmans | Polynomial)
    }

    /// Whether segments may.
    pub fn is_for_segments(self) -> bool {
        self == Regularization::None || !self.is_for_particles()
    }
}

fn segment_regularization(number: i32) -> Result<Regularization> {
    let found = Regularization::from_code(number).filter(|r| r.is_for_segments());
    code(
        "segment_regularization",
        number,
        found,
        "WFMM_REG_NONE, _RANKINE, _LAMB_OSEEN, _VATISTAS, _SCULLY or _OFFSET (0 to 5)",
    )
}

fn particle_regularization(number: i32) -> Result<Regularization> {
    let found = Regularization::from_code(number).filter(|r| r.is_for_particles());
    let accepted =
        "WFMM_REG_NONE (0), _GAUSS_ERF, _EXPONENTIAL, _COMPACT, _ROSENHEAD, _WINCKELMANS or _POLYNOMIAL (6 to 11)";
    code("particle_regularization", number, found, accepted)
}

fn plane(o: &wfmm_plan_options) -> Result<Option<Plane>> {
    let position = finite("plane_position", o.plane_position)?;
    match o.plane_axis {
        0 => Ok(None),
        axis @ 1..=3 => Ok(Some(Plane { axis: axis as usize - 1, position })),
        other => value_error("plane_axis", other, "0 (no plane), 1 (x), 2 (y) or 3 (z)"),
    }
}

fn expansion(o: &wfmm_plan_options) -> Result<Expansion> {
    let accepted = "WFMM_EXPANSION_HARMONICS or _PSEUDO_PARTICLES";
    let found = code("expansion", o.expansion, Expansion::from_code(o.expansion), accepted)?;
    if found == Expansion::Harmonics {
        return Ok(found);
    }
    let with = match o.period.iter().position(|&p| p > 0.0) {
        _ if o.method == WFMM_METHOD_TREECODE => "method = WFMM_METHOD_TREECODE (3)".to_owned(),
        _ if o.order > PSEUDO_ORDER_MAX => format!("order = {}", o.order),
        Some(axis) => format!("period[{axis}] = {}", number(o.period[axis])),
        None => return Ok(found),
    };
    Error::fail(
        WFMM_ERR_UNSUPPORTED,
        format!(
            "expansion = WFMM_EXPANSION_PSEUDO_PARTICLES (1) with {with}: pseudo-particles are built for the FMM in open domains, up \
             to order {PSEUDO_ORDER_MAX}; use WFMM_EXPANSION_HARMONICS"
        ),
    )
}

fn period(o: &wfmm_plan_options) -> Result<Option<[f64; 3]>> {
    for (axis, period) in o.period.into_iter().enumerate() {
        let name = format!("period[{axis}]");
        if finite(&name, period)? < 0.0 || (period > 0.0 && !(SHORTEST_PERIOD..LONGEST_PERIOD).contains(&period)) {
            return value_error(&name, number(period), "0 (open) or a length from 1e-100 to 1e100");
        }
        if period > 0.0 && o.plane_axis == axis as i32 + 1 {
            let message = format!(
                "{name} = {} along the normal of the ground plane, plane_axis = {}: the images of plane and period \
                 differ; accepted: 0 (open), or a period along the other axes",
                number(period),
                o.plane_axis
            );
            return Error::fail(WFMM_ERR_UNSUPPORTED, message);
        }
        if period > 0.0 && o.method == WFMM_METHOD_TREECODE {
            let message = format!(
                "method = WFMM_METHOD_TREECODE ({}) with {name} = {}: the treecode has no periodic images; use \
                 WFMM_METHOD_AUTO, _DIRECT or _FMM",
                o.method,
                number(period)
            );
            return Error::fail(WFMM_ERR_UNSUPPORTED, message);
        }
    }
    check_ratio(o.period)?;
    Ok(o.period.iter().any(|&p| p > 0.0).then_some(o.period))
}

fn check_ratio(period: [f64; 3]) -> Result<()> {
    let periods = period.into_iter().filter(|&p| p > 0.0);
    let (shortest, longest) = periods.fold((f64::INFINITY, 0.0), |(a, b), p| (f64::min(a, p), f64::max(b, p)));
    if longest <= MOST_UNEQUAL * shortest {
        return Ok(());
    }
    let message = format!(
        "period = {period:?}: the longest period is {:.3e} times the shortest; accepted: at most {MOST_UNEQUAL:e} times, or 0 (open) in place \
         of the longest",
        longest / shortest
    );
    Error::fail(WFMM_ERR_UNSUPPORTED, message)
}

fn tolerance(t: f64) -> Result<f64> {
    if finite("tolerance", t)? <= 0.0 {
        return value_error("tolerance", number(t), "a positive number");
    }
    Ok(t.min(TOLERANCE_MAX))
}

fn radius(c: f64) -> Result<f64> {
    if finite("core_radius", c)? < 0.0 {
        return value_error("core_radius", number(c), "0 or a positive number");
    }
    Ok(c)
}

/// Refuses NaN and infinity.
pub fn finite(name: &str, x: f64) -> Result<f64> {
    if x.is_finite() {
        Ok(x)
    } else {
        Error::fail(WFMM_ERR_NOT_FINITE, format!("{name} = {x}; a finite number is needed"))
    }
}

fn no_unknown_flags(flags: u64, known: u64) -> Result<()> {
    let unknown = flags & !known;
    if unknown == 0 {
        return Ok(());
    }
    Error::fail(
        WFMM_ERR_CONSTANT,
        format!("flags = {flags:#x}; the bits {unknown:#x} are no known flag, {known:#x} is accepted"),
    )
}

/// Passes a code on, or says which number of which argument is unknown and what is accepted.
pub fn code<T>(name: &str, number: i32, found: Option<T>, accepted: &str) -> Result<T> {
    found.ok_or_else(|| {
        Error::new(WFMM_ERR_CONSTANT, format!("{name} = {number} is no known constant; accepted: {accepted}"))
    })
}

/// An error that names an option, its value and what would be accepted.
pub fn value_error<T>(name: &str, value: impl std::fmt::Display, accepted: &str) -> Result<T> {
    Error::fail(WFMM_ERR_VALUE, format!("{name} = {value}; accepted: {accepted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WFMM_ERR_CONSTANT;

    #[test]
    fn defaults_are_accepted_and_are_those_of_the_contract() {
        let o = PlanOptions::checked(&wfmm_plan_options::default()).unwrap();
        assert_eq!(o.segment_regularization, Regularization::Vatistas);
        assert_eq!(o.particle_regularization, Regularization::GaussErf);
        assert_eq!((o.tolerance, o.index_base, o.accumulate), (1e-4, 0, false));
        assert_eq!(size_of::<wfmm_plan_options>(), 104);
        assert_eq!(size_of::<wfmm_session_options>(), 40);
    }

    #[test]
    fn regularizations_are_refused_for_the_wrong_element() {
        let o = wfmm_plan_options { segment_regularization: WFMM_REG_GAUSS_ERF, ..Default::default() };
        assert_eq!(PlanOptions::checked(&o).unwrap_err().status, WFMM_ERR_CONSTANT);
        let o = wfmm_plan_options { particle_regularization: WFMM_REG_VATISTAS, ..Default::default() };
        assert_eq!(PlanOptions::checked(&o).unwrap_err().status, WFMM_ERR_CONSTANT);
    }

    #[test]
    fn planes_are_taken_and_what_is_not_built_is_refused() {
        let ask = |o: wfmm_plan_options| PlanOptions::checked(&o).map_err(|e| (e.status, e.message));
        let o = wfmm_plan_options { plane_axis: 2, plane_position: 0.5, ..Default::default() };
        assert_eq!(ask(o).unwrap().plane, Some(Plane { axis: 1, position: 0.5 }));
        assert_eq!(ask(o).unwrap().plane.unwrap().mirror([1.0, 2.0, 3.0]), [1.0, -1.0, 3.0]);
        for plane_axis in [-1, 4] {
            assert_eq!(ask(wfmm_plan_options { plane_axis, ..o }).unwrap_err().0, WFMM_ERR_VALUE);
        }
        let (status, message) = ask(wfmm_plan_options { period: [0.0, -2.0, 0.0], ..o }).unwrap_err();
        assert!(status == WFMM_ERR_VALUE && message.contains("period[1] = -2"), "{message}");
        let (status, message) = ask(wfmm_plan_options { period: [f64::NAN, 0.0, 0.0], ..o }).unwrap_err();
        assert!(status == WFMM_ERR_NOT_FINITE && message.contains("period[0] = NaN"), "{message}");
        let (status, message) = ask(wfmm_plan_options { period: [0.0, 0.0, 2.0], plane_axis: 3, ..o }).unwrap_err();
        assert!(status == WFMM_ERR_UNSUPPORTED && message.contains("period[2] = 2"), "{message}");
        let boxed = |period| ask(wfmm_plan_options { plane_axis: 0, period, ..o });
        for period in [[1.0, 1.0, 1e6], [1e-3, 0.0, 1e3], [0.0, 1e99, 0.0], [0.0, 0.0, 1e-99]] {
            assert_eq!(boxed(period).unwrap().period, Some(period));
        }
        for period in [[1.0, 1.1e6, 1.0], [1e-3, 0.0, 1.1e3], [1e-99, 1.0, 1e99]] {
            let (status, message) = boxed(period).unwrap_err();
            let words = [format!("{period:?}"), "1e6 times".into()];
            assert!(status == WFMM_ERR_UNSUPPORTED && words.iter().all(|w| message.contains(w)), "{message}");
        }
        let treecode = wfmm_plan_options { method: WFMM_METHOD_TREECODE, plane_axis: 0, ..o };
        assert!(ask(treecode).is_ok());
        let (status, message) = ask(wfmm_plan_options { period: [0.0, 2.0, 0.0], ..treecode }).unwrap_err();
        let words = ["WFMM_METHOD_TREECODE (3)", "period[1] = 2", "WFMM_METHOD_AUTO, _DIRECT or _FMM"];
        assert!(status == WFMM_ERR_UNSUPPORTED && words.iter().all(|w| message.contains(w)), "{message}");
        let expansion = WFMM_EXPANSION_PSEUDO_PARTICLES;
        assert_eq!(ask(wfmm_plan_options { expansion, ..o }).unwrap().expansion, Expansion::PseudoParticles);
        for (refused, word) in [
            (wfmm_plan_options { method: WFMM_METHOD_TREECODE, ..o }, "TREECODE (3)"),
            (wfmm_plan_options { period: [2.0, 0.0, 0.0], ..o }, "period[0] = 2"),
            (wfmm_plan_options { order: 17, ..o }, "order = 17"),
        ] {
            let (status, message) = ask(wfmm_plan_options { expansion, ..refused }).unwrap_err();
            assert!(status == WFMM_ERR_UNSUPPORTED && message.contains(word), "{message}");
        }
        assert_eq!(ask(wfmm_plan_options { expansion: 2, ..o }).unwrap_err().0, WFMM_ERR_CONSTANT);
        let plane_position = f64::NAN;
        assert_eq!(ask(wfmm_plan_options { plane_position, ..o }).unwrap_err().0, WFMM_ERR_NOT_FINITE);
    }

    #[test]
    fn tolerance_knows_the_precision() {
        let ask = |tolerance, precision| {
            PlanOptions::checked(&wfmm_plan_options { tolerance, precision, ..Default::default() })
                .map_err(|e| e.status)
        };
        assert!(ask(1e-5, WFMM_PRECISION_F32).is_ok());
        assert_eq!(ask(1e-6, WFMM_PRECISION_F32).unwrap_err(), WFMM_ERR_TOLERANCE);
        assert!(ask(1e-10, WFMM_PRECISION_F64).is_ok());
        assert_eq!(ask(1e-14, WFMM_PRECISION_ARRAYS).unwrap_err(), WFMM_ERR_TOLERANCE);
        assert_eq!(ask(0.0, 0).unwrap_err(), WFMM_ERR_VALUE);
        assert_eq!(ask(f64::NAN, 0).unwrap_err(), WFMM_ERR_NOT_FINITE);
    }
}
