//! The soname, which is no other library's.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux" | "freebsd") => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libwakefmm-python.so"),
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libwakefmm-python.dylib"),
        _ => {}
    }
}
