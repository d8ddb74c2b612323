//! Runs a test of the calling program again, in a process of its own, under the fake driver.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tests run at the same time: each run has a folder of its own.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// Builds the driver and runs the ignored test `test` with FAKE_CUDA = `failure`: what it printed, and the driver's log.
pub fn run(test: &str, failure: &str) -> (String, String) {
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{test}-{failure}-{run}"));
    std::fs::create_dir_all(&folder).unwrap();
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/cuda.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1", "-o"]);
    command.arg(folder.join("libcuda.so.1")).arg(source);
    assert!(command.status().expect("a C compiler runs").success());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--ignored", "--test-threads=1"]);
    child.env("FAKE_CUDA", failure).env("LD_LIBRARY_PATH", &folder).env("WAKEFMM_LOG", "warn");
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    child.env("FAKE_CUDA_LOG", &log);
    let child = child.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{test}, {failure}: {text}\n{errors}");
    // However many sessions and evaluations run into a failure: one line says so.
    assert!(errors.matches("the CPU takes over").count() <= 1, "{test}, {failure}: {errors}");
    (text.into_owned() + &errors, std::fs::read_to_string(&log).unwrap_or_default())
}

/// Writes a line of its own between those of the driver.
#[allow(dead_code)]
pub fn say(what: &str) {
    use std::io::Write;
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(std::env::var("FAKE_CUDA_LOG").unwrap());
    writeln!(log.as_mut().unwrap(), "# {what}").unwrap();
}

/// The driver's log of such a run, by the lines of `say`.
#[allow(dead_code)]
pub fn log_of(test: &str, failure: &str) -> Vec<(String, Vec<String>)> {
    let (_, log) = run(test, failure);
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for line in log.lines() {
        match (line.strip_prefix("# "), parts.last_mut()) {
            (Some(name), _) => parts.push((name.to_owned(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    parts
}
