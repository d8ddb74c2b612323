//! The rules of the house that a compiler does not know: which way imports go, where `unsafe` may be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The picture of `src/lib.rs` as numbers: a module uses its own level and what lies below.
const LEVELS: [(&str, u32); 16] = [
    ("codes", 0),
    ("error", 1),
    ("options", 1),
    ("report", 1),
    ("inputs", 1),
    ("logging", 1),
    ("memory", 1),
    ("simd", 2),
    ("distributed", 2),
    ("math", 3),
    ("backend", 4),
    ("session", 5),
    ("plan", 6),
    ("flow", 7),
    ("ffi", 8),
    ("build", 9),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            found.push(entry);
        }
    }
}

/// Every source file: its top module, its path, and its text without the tests at its end.
fn files() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let read = |path: &PathBuf| {
        let inside = path.strip_prefix(&root).expect("below src");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let text = fs::read_to_string(path).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        (first.trim_end_matches(".rs").to_owned(), inside.display().to_string(), code)
    };
    paths.iter().map(read).filter(|(_, path, _)| !path.ends_with("tests.rs")).collect()
}

/// Names that follow `crate::` in code, not in comments.
fn imports(code: &str) -> Vec<String> {
    let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    let names = lines.flat_map(|l| l.split("crate::").skip(1).map(|rest| rest.to_owned()).collect::<Vec<_>>());
    names.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[test]
fn imports_go_down() {
    let levels: BTreeMap<&str, u32> = LEVELS.into_iter().collect();
    let mut wrong = Vec::new();
    for (module, path, code) in files().iter().filter(|(module, ..)| module != "lib") {
        let own = *levels.get(module.as_str()).unwrap_or_else(|| panic!("{module} has no level in LEVELS"));
        for used in imports(code) {
            if levels.get(used.as_str()).is_some_and(|level| *level > own) {
                wrong.push(format!("src/{path} uses crate::{used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that go up:\n{}", wrong.join("\n"));
}

#[test]
fn the_picture_shows_every_module() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("src/lib.rs");
    let picture: String = lib.lines().filter(|l| l.starts_with("//!")).collect();
    for module in lib.lines().filter_map(|l| l.strip_prefix("pub mod ")).map(|l| l.trim_end_matches(';')) {
        assert!(picture.contains(module), "{module} is missing in the picture of src/lib.rs");
    }
}

#[test]
fn unsafe_is_only_in_listed_modules() {
    // Boundary, driver, lanes, allocator, threads; the last is where threads write to disjoint targets.
    let listed = ["ffi/", "backend/cuda/", "simd", "memory", "session/threads", "backend/cpu/fmm/field"];
    let allowed = |path: &str| listed.iter().any(|start| path.starts_with(start));
    let word = |code: &str| {
        let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
        lines
            .flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_').collect::<Vec<_>>())
            .any(|w| w == "unsafe")
    };
    let wrong: Vec<_> =
        files().into_iter().filter(|(_, path, code)| !allowed(path) && word(code)).map(|f| f.1).collect();
    assert!(wrong.is_empty(), "unsafe outside of boundary, driver and lanes: {wrong:?}");
}

#[test]
fn an_import_that_goes_up_would_be_seen() {
    assert_eq!(imports("use crate::plan::Plan;\n// use crate::ffi;\nlet x = crate::math::f();"), ["plan", "math"]);
}
