//! What an engine did: one table, from which the C struct is filled.

/// The passes, in the order of the data; `seconds` of a report are indexed by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Pass {
    Transfer = 0,
    Tree,
    Lists,
    P2m,
    M2m,
    M2l,
    L2l,
    L2p,
    P2p,
    Total,
}

pub const PASS_COUNT: usize = 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// 1 cpu, 2 cuda.
    pub backend: i32,
    pub method: i32,
    pub order: i32,
    pub depth: i32,
    /// 1 f32, 2 f64.
    pub precision: i32,
    pub cells: i64,
    /// Cell pairs of the far field (M2L).
    pub far_pairs: i64,
    /// Element pairs summed directly.
    pub near_pairs: i64,
    pub host_bytes: u64,
    pub device_bytes: u64,
    pub estimated_error: f64,
    pub seconds: [f64; PASS_COUNT],
}
