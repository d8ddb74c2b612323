//! The shared library's name at run time: `libwakefmm.so.N`, N from `[package.metadata.capi.library]` of Cargo.toml, where
//! cargo-c reads it too. A test compares it with `WFMM_ABI_VERSION`.

use std::path::PathBuf;
use std::{env, fs};

pub fn set() {
    println!("cargo:rerun-if-changed=Cargo.toml");
    let manifest = fs::read_to_string("Cargo.toml").expect("cargo runs build scripts beside Cargo.toml");
    let section = manifest.split("[package.metadata.capi.library]").nth(1).expect("the section is in Cargo.toml");
    let version = section.split("version = \"").nth(1).expect("the ABI version is in its section");
    let abi: String = version.chars().take_while(char::is_ascii_digit).collect();
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
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
