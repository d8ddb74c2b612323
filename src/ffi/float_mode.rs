//! The caller's floating-point mode, put aside during a call.
//!
//! A host may round upwards or flush denormals to zero (`-Ofast`, `ieee_arithmetic`); the library's arithmetic, and that
//! of threads started meanwhile, must not depend on it.

/// Restores the caller's mode when dropped.
pub struct Default {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
}

#[cfg(target_arch = "x86_64")]
impl Default {
    /// Round to nearest, denormals kept, no traps, no pending flag.
    const MODE: u32 = 0x1f80;

    pub fn enter() -> Self {
        let mut saved = 0u32;
        let mode = Self::MODE;
        // MXCSR belongs to this thread and is restored on every way out; compiled code assumes the default mode anyway.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut saved, options(nostack));
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack));
        }
        Self { saved }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Default {
    fn drop(&mut self) {
        // The word that this thread had, control and flags.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const self.saved, options(nostack)) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Default {
    pub fn enter() -> Self {
        Self {}
    }
}
