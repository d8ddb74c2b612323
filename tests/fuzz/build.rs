//! Compiles the C side of the fuzz target against the committed header.
fn main() {
    for file in ["calls.c", "calls.h", "calls_real.h", "../../include/wakefmm.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    cc::Build::new().file("calls.c").include("../../include").std("c11").flag("-g").compile("wakefmm_calls");
}
