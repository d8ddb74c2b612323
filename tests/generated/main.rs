//! What exists twice is generated: the C header and the Fortran module, from the Rust sources.
//!
//! The tests fail when a committed copy is stale; `make generate` (WFMM_GENERATE=1) writes them.

mod fortran;
mod header;
mod model;

use std::path::Path;

/// The committed file equals what would be generated, or is written where that was asked for.
fn up_to_date(path: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("WFMM_GENERATE").is_some() {
        std::fs::write(&path, generated).expect("a writable checkout");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let line = committed.lines().zip(generated.lines()).position(|(a, b)| a != b).map_or(0, |l| l + 1);
    assert!(committed == generated, "{} is stale from line {line} on: run `make generate`", path.display());
}

fn model() -> model::Model {
    model::read(Path::new(env!("CARGO_MANIFEST_DIR")))
}

#[test]
fn the_header_is_up_to_date() {
    up_to_date("include/wakefmm.h", &header::generate(&model(), Path::new(env!("CARGO_MANIFEST_DIR"))));
}

#[test]
fn the_fortran_module_is_up_to_date() {
    up_to_date("fortran/wakefmm.f90", &fortran::generate(&model()));
}

#[test]
#[should_panic(expected = "no counterpart in Fortran")]
fn an_unknown_type_stops_the_generator() {
    let mut model = model();
    model.functions[1].arguments[0].ty = "*mut u128".into();
    fortran::generate(&model);
}

#[test]
fn numbers_and_names_are_used_once() {
    let model = model();
    let mut names: Vec<_> =
        model.constants.iter().map(|c| &c.name).chain(model.functions.iter().map(|f| &f.name)).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    let mut statuses: Vec<_> =
        model.constants.iter().filter(|c| c.name.starts_with("WFMM_ERR_")).map(|c| &c.value).collect();
    let all = statuses.len();
    statuses.sort();
    statuses.dedup();
    assert_eq!(statuses.len(), all);
}
