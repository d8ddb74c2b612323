//! The shared library's name at run time: `libwakefmm.so.N`, N from `[package.metadata.capi.library]` of Cargo.toml, where
//! cargo-c reads it too. A test compares it with `WFMM_ABI_VERSION`. WFMM_SONAME in the environment replaces it: a loader takes
//! two libraries of one name for the same, so that the copy in the Python package needs a name of its own.

use std::path::PathBuf;
use std::{env, fs};

pub fn set() {
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-env-changed=WFMM_SONAME");
    let manifest = fs::read_to_string("Cargo.toml").expect("cargo runs build scripts beside Cargo.toml");
    let section = manifest.split("[package.metadata.capi.library]").nth(1).expect("the section is in Cargo.toml");
    let version = section.split("version = \"").nth(1).expect("the ABI version is in its section");
    let abi: String = version.chars().take_while(char::is_ascii_digit).collect();
    let own = env::var("WFMM_SONAME").unwrap_or_default();
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux" | "freebsd") if !own.is_empty() => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{own}"),
        Ok("linux" | "freebsd") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libwakefmm.so.{abi}");
            name_in_the_build_folder(&abi);
        }
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libwakefmm.{abi}.dylib"),
        _ => {}
    }
}

/// Programs that were linked in the build folder look there for the soname too.
fn name_in_the_build_folder(abi: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // OUT_DIR is PROFILE/build/wakefmm-HASH/out.
    let profile = out.ancestors().nth(3).expect("cargo's layout");
    #[cfg(unix)]
    for folder in [profile.to_path_buf(), profile.join("deps")] {
        let link = folder.join(format!("libwakefmm.so.{abi}"));
        let _ = fs::remove_file(&link);
        if let Err(error) = std::os::unix::fs::symlink("libwakefmm.so", &link) {
            println!("cargo:warning={}: {error}; link programs against an installed library", link.display());
        }
    }
}
