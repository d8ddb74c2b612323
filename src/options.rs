//! Options in their checked, internal form. Numbers are those of the C API.

/// How a core regularizes its element; numbers and formulas: `physics`, the C header's `WFMM_REG_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Regularization {
    None = 0,
    Rankine = 1,
    LambOseen = 2,
    Vatistas = 3,
    Scully = 4,
    Offset = 5,
    GaussErf = 6,
    Exponential = 7,
    Compact = 8,
    Rosenhead = 9,
    Winckelmans = 10,
    Polynomial = 11,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Method {
    Auto = 0,
    Direct = 1,
    Fmm = 2,
    Treecode = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Precision {
    Arrays = 0,
    F32 = 1,
    F64 = 2,
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
}
