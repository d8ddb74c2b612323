//! Names the fat binaries that the crate embeds: the committed ones, or those of a compiler that the builder asks for.
//!
//! `WAKEFMM_NVCC=/path/to/nvcc` compiles kernels/*.cu with that compiler, `WAKEFMM_NVCC=auto` with the one in `$CUDA_HOME/bin`,
//! `$CUDA_PATH/bin` or on the path; the library then needs a driver as new as that CUDA. Unset: kernels/fatbin, no CUDA toolkit needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Writes `kernels.rs`, a table of unit names and images, for `backend::cuda::context`.
pub fn embed() {
    println!("cargo:rerun-if-env-changed=WAKEFMM_NVCC");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let images = match env::var("WAKEFMM_NVCC") {
        Ok(asked) if !asked.is_empty() => {
            println!("cargo:rerun-if-changed=kernels");
            compile(&root, &out, &compiler(&asked))
        }
        _ => {
            println!("cargo:rerun-if-changed=kernels/fatbin");
            root.join("kernels/fatbin")
        }
    };
    // tests/emulated_gpu tells them apart by their bytes.
    println!("cargo:rustc-env=WAKEFMM_IMAGES={}", images.display());
    let mut table = String::from("/// The kernels: unit and fat binary.\nstatic KERNELS: &[(&str, &[u8])] = &[\n");
    for image in sorted(&images, "fatbin") {
        let unit = image.file_stem().expect("listed by its extension").to_string_lossy().into_owned();
        table += &format!("    ({unit:?}, include_bytes!({:?})),\n", image.display().to_string());
    }
    table += "];\n";
    fs::write(out.join("kernels.rs"), table).expect("OUT_DIR is writable");
}

fn compiler(asked: &str) -> PathBuf {
    if asked != "auto" {
        return PathBuf::from(asked);
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = homes.chain(env::split_paths(&path)).collect();
    let found = folders.iter().map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file());
    found.unwrap_or_else(|| {
        panic!("WAKEFMM_NVCC=auto, but there is no nvcc in $CUDA_HOME/bin, $CUDA_PATH/bin or on the path")
    })
}

fn compile(root: &Path, out: &Path, nvcc: &Path) -> PathBuf {
    let images = out.join("fatbin");
    let script = root.join("kernels/compile.sh");
    let done = Command::new("sh").arg(&script).arg(nvcc).arg(&images).status();
    let done = done.unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(done.success(), "kernels/compile.sh failed with {}", nvcc.display());
    images
}

fn sorted(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = listed.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}
