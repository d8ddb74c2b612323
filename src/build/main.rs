//! Build script: what must be generated or found before the library is compiled.

mod kernels;
mod soname;

fn main() {
    println!("cargo:rerun-if-changed=src/build");
    kernels::embed();
    soname::set();
}
