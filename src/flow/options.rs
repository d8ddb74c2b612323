//! Options of a flow: the C struct with its defaults, its constants, and the checked form.

use crate::error::{Error, Result, WFMM_ERR_CONSTANT, WFMM_ERR_UNSUPPORTED, WFMM_ERR_VALUE, number};
use crate::options::{PlanOptions, Regularization, code, finite, value_error};

codes! {
    /// Elements of a flow.
    enum ElementKind {
        /// Vortex particles: position, strength, core radius.
        Particles = 0 => WFMM_KIND_PARTICLES,
        /// Vortex filaments: segments whose points move; the circulation is kept.
        Filaments = 1 => WFMM_KIND_FILAMENTS,
        /// Segments that induce and do not move: the host sets them again.
        BoundSegments = 2 => WFMM_KIND_BOUND_SEGMENTS,
        /// Points that move with the fluid.
        Tracers = 3 => WFMM_KIND_TRACERS,
        /// Inertial parcels: drag, gravity, buoyancy, ground contact.
        Dust = 4 => WFMM_KIND_DUST,
    }

    /// What `wfmm_flow_get_*` returns.
    enum Quantity {
        /// Three numbers a row, length: of a particle, tracer, parcel, or point of filaments or bound segments.
        Position = 0 => WFMM_QUANTITY_POSITION,
        /// Three numbers a row: strength of particles, length^3/time.
        Strength = 1 => WFMM_QUANTITY_STRENGTH,
        /// One number a row: core radius of particles and segments, length.
        CoreRadius = 2 => WFMM_QUANTITY_CORE_RADIUS,
        /// Three numbers a row, length/time, in the order of the positions: the velocity of the fluid at the present time; for dust
        /// the velocity of the parcel.
        Velocity = 3 => WFMM_QUANTITY_VELOCITY,
        /// One number a segment: circulation, length^2/time.
        Circulation = 4 => WFMM_QUANTITY_CIRCULATION,
        /// One number a parcel of dust: diameter, length.
        Diameter = 5 => WFMM_QUANTITY_DIAMETER,
        /// One number a parcel of dust: density, mass/length^3.
        Density = 6 => WFMM_QUANTITY_DENSITY,
    }

    /// How a flow steps in time.
    enum Integrator {
        /// Order 1, one evaluation a step.
        Euler = 0 => WFMM_INTEGRATOR_EULER,
        /// Adams-Bashforth, order 2, one evaluation a step; two where elements were added, vortices removed, bound segments set in
        /// another number or connectivity or the velocity callback set since the last step, or where the step is more than 100 times as
        /// long. The step size may vary.
        Ab2 = 1 => WFMM_INTEGRATOR_AB2,
        /// Low-storage Runge-Kutta, order 3, three evaluations a step.
        Rk3 = 2 => WFMM_INTEGRATOR_RK3,
        /// Runge-Kutta, order 4, four evaluations a step; the default.
        Rk4 = 3 => WFMM_INTEGRATOR_RK4,
    }

    /// How the strength a of particles follows the velocity gradient J, J_ij = du_i/dx_j.
    enum Stretching {
        /// Strengths are constant; the default.
        None = 0 => WFMM_STRETCHING_NONE,
        /// da_i/dt = J_ij a_j.
        Classical = 1 => WFMM_STRETCHING_CLASSICAL,
        /// da_i/dt = J_ji a_j. Keeps the sum of a among particles of equal core radii, in free space or with periods; with a ground
        /// plane its normal component. Segments change the sum.
        Transpose = 2 => WFMM_STRETCHING_TRANSPOSE,
        /// Half of each.
        Mixed = 3 => WFMM_STRETCHING_MIXED,
    }

    /// How viscosity acts on particles.
    enum Spreading {
        /// Not at all; the default.
        None = 0 => WFMM_SPREADING_NONE,
        /// Cores spread: d(c^2)/dt = 2 viscosity. Gaussian cores only (WFMM_REG_GAUSS_ERF).
        Cores = 1 => WFMM_SPREADING_CORES,
    }
}

impl ElementKind {
    /// Segments, whose ends are points of their own.
    pub fn is_lines(self) -> bool {
        matches!(self, Self::Filaments | Self::BoundSegments)
    }
}

/// Options of a flow. Fill with `wfmm_flow_options_init` and change what is wanted.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_flow_options {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_INTEGRATOR_*`; default RK4.
    pub integrator: i32,
    /// `WFMM_STRETCHING_*` of particles; default NONE.
    pub stretching: i32,
    /// `WFMM_SPREADING_*` of particles; default NONE.
    pub spreading: i32,
    /// Kinematic viscosity, length^2/time; default 0. Core radii of filaments follow
    /// d(c^2)/dt = 4 x 1.25643 (viscosity + squire |circulation|) - c^2 (dl/dt)/l, l the length of a segment.
    pub viscosity: f64,
    /// Squire's factor of |circulation| in the growth of filament cores (Squire 1965), a number without unit; default 0.
    pub squire: f64,
    /// Core radius, a length, above which particles that spread get narrower cores, of core_limit/sqrt(2), and strengths that
    /// carry the same vorticity; 0, the default: never. Needs WFMM_SPREADING_CORES. WFMM_ERR_UNSUPPORTED with a period.
    pub core_limit: f64,
    /// Length above which filament segments are split into equal pieces after a step; 0, the default: never.
    pub split_length: f64,
    /// Acceleration of dust by gravity, length/time^2; default 0.
    pub gravity: [f64; 3],
    /// Density of the fluid, mass/length^3, for buoyancy and Reynolds number of dust; 0, the default: no buoyancy, and Stokes
    /// drag at any Reynolds number.
    pub fluid_density: f64,
    /// Dynamic viscosity of the fluid, mass/(length time), for the drag of dust; 0, the default: dust is refused.
    pub fluid_viscosity: f64,
    /// Coefficient of restitution of dust at the ground plane, 0 to 1: the share of the normal velocity that is kept,
    /// reversed; default 0.
    pub restitution: f64,
    /// Share of its tangential velocity that dust loses at the ground plane, 0 to 1; default 0.
    pub friction: f64,
    /// 0.
    pub reserved: [f64; 4],
    /// No flag is defined yet: 0.
    pub flags: u64,
}

impl Default for wfmm_flow_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            integrator: WFMM_INTEGRATOR_RK4,
            stretching: WFMM_STRETCHING_NONE,
            spreading: WFMM_SPREADING_NONE,
            viscosity: 0.0,
            squire: 0.0,
            core_limit: 0.0,
            split_length: 0.0,
            gravity: [0.0; 3],
            fluid_density: 0.0,
            fluid_viscosity: 0.0,
            restitution: 0.0,
            friction: 0.0,
            reserved: [0.0; 4],
            flags: 0,
        }
    }
}

/// What the caller asked of a flow, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOptions {
    pub integrator: Integrator,
    pub stretching: Stretching,
    pub spreading: Spreading,
    pub viscosity: f64,
    pub squire: f64,
    /// 0: never.
    pub core_limit: f64,
    /// 0: never.
    pub split_length: f64,
    pub gravity: [f64; 3],
    pub fluid_density: f64,
    pub fluid_viscosity: f64,
    pub restitution: f64,
    pub friction: f64,
}

impl FlowOptions {
    /// By name, as numbers: what all ranks must say alike.
    pub fn fields(&self) -> [(&'static str, f64); 14] {
        // Every field by name: a new one does not compile before it is compared or left out on purpose.
        let Self {
            integrator,
            stretching,
            spreading,
            viscosity,
            squire,
            core_limit,
            split_length,
            gravity: [x, y, z],
            fluid_density,
            fluid_viscosity,
            restitution,
            friction,
        } = *self;
        [
            ("integrator", f64::from(integrator as i32)),
            ("stretching", f64::from(stretching as i32)),
            ("spreading", f64::from(spreading as i32)),
            ("viscosity", viscosity),
            ("squire", squire),
            ("core_limit", core_limit),
            ("split_length", split_length),
            ("gravity[0]", x),
            ("gravity[1]", y),
            ("gravity[2]", z),
            ("fluid_density", fluid_density),
            ("fluid_viscosity", fluid_viscosity),
            ("restitution", restitution),
            ("friction", friction),
        ]
    }

    /// What was asked for and has no effect, whatever elements there will be.
    pub fn without_effect(&self, plan: &PlanOptions) -> Vec<String> {
        let mut idle = vec![];
        if self.core_limit > 0.0 && self.viscosity == 0.0 {
            idle.push(format!(
                "core_limit = {}, but viscosity = 0: cores do not spread, and only those that are given wider are narrowed",
                number(self.core_limit)
            ));
        }
        if plan.plane.is_none() {
            let contact = [("restitution", self.restitution), ("friction", self.friction)];
            let given = contact.into_iter().filter(|(_, x)| *x > 0.0);
            idle.extend(given.map(|(name, x)| {
                format!("{name} = {}, but there is no ground plane for dust to touch: plane_axis = 0", number(x))
            }));
        }
        idle
    }

    /// Checked beside the options of the sums.
    pub fn checked(o: &wfmm_flow_options, plan: &PlanOptions) -> Result<Self> {
        let integrators = "WFMM_INTEGRATOR_EULER, _AB2, _RK3 or _RK4";
        let stretchings = "WFMM_STRETCHING_NONE, _CLASSICAL, _TRANSPOSE or _MIXED";
        let spreadings = "WFMM_SPREADING_NONE or _CORES";
        let spreading = code("spreading", o.spreading, Spreading::from_code(o.spreading), spreadings)?;
        if spreading == Spreading::Cores && plan.particle_regularization != Regularization::GaussErf {
            return Error::fail(
                WFMM_ERR_VALUE,
                "spreading = WFMM_SPREADING_CORES (1) needs Gaussian cores: particle_regularization = WFMM_REG_GAUSS_ERF",
            );
        }
        if not_negative("core_limit", o.core_limit)? > 0.0 {
            if spreading != Spreading::Cores {
                let message = "narrower cores are for those that spread: spreading = WFMM_SPREADING_CORES (1)";
                return Error::fail(WFMM_ERR_VALUE, format!("core_limit = {}: {message}", number(o.core_limit)));
            }
            if plan.period.is_some() {
                let message = "cores are not narrowed in a periodic domain; accepted: 0";
                return Error::fail(WFMM_ERR_UNSUPPORTED, format!("core_limit = {}: {message}", number(o.core_limit)));
            }
        }
        for (k, value) in o.gravity.into_iter().enumerate() {
            finite(&format!("gravity[{k}]"), value)?;
        }
        if let Some(k) = o.reserved.iter().position(|r| *r != 0.0) {
            return value_error(&format!("reserved[{k}]"), number(o.reserved[k]), "0");
        }
        if o.flags != 0 {
            return Error::fail(
                WFMM_ERR_CONSTANT,
                format!("flags = {:#x}: no flag of a flow is known; accepted: 0", o.flags),
            );
        }
        Ok(Self {
            integrator: code("integrator", o.integrator, Integrator::from_code(o.integrator), integrators)?,
            stretching: code("stretching", o.stretching, Stretching::from_code(o.stretching), stretchings)?,
            spreading,
            viscosity: not_negative("viscosity", o.viscosity)?,
            squire: not_negative("squire", o.squire)?,
            core_limit: o.core_limit,
            split_length: not_negative("split_length", o.split_length)?,
            gravity: o.gravity,
            fluid_density: not_negative("fluid_density", o.fluid_density)?,
            fluid_viscosity: not_negative("fluid_viscosity", o.fluid_viscosity)?,
            restitution: fraction("restitution", o.restitution)?,
            friction: fraction("friction", o.friction)?,
        })
    }
}

fn not_negative(name: &str, x: f64) -> Result<f64> {
    if finite(name, x)? >= 0.0 {
        return Ok(x);
    }
    value_error(name, number(x), "0 or a positive number")
}

fn fraction(name: &str, x: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&finite(name, x)?) {
        return Ok(x);
    }
    value_error(name, number(x), "0 to 1")
}
