//! Pointers in the structs that kernels take. To the host they are addresses in device memory, zero where there is nothing; in
//! the generated kernels/args.cuh and kernels/fmm_args.cuh they are `T *` and `const T *`.

/// A type that a pointer of a kernel may have; the host sees none of it.
pub trait Pointee {
    type Address;
}

impl<T> Pointee for T {
    type Address = u64;
}

pub type Pointer<T> = <T as Pointee>::Address;
/// Only read by kernels.
pub type ConstPointer<T> = <T as Pointee>::Address;

/// Structs of kernels/fmm.cuh and kernels/fmm_check.cuh, made and read on the device alone.
pub enum State {}
pub enum Squares {}
