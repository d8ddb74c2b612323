//! What exists twice is generated: the C header, the Fortran module and the structs that kernels take, from the Rust sources.
//!
//! The tests fail when a committed copy is stale; `make generate` (WFMM_GENERATE=1) writes them.

mod fortran;
mod header;
mod kernels;
mod model;
mod reference;

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
fn the_table_of_fortran_procedures_is_up_to_date() {
    up_to_date("docs/reference-fortran.md", &reference::generate(&fortran::generate(&model())));
}

#[test]
fn the_structs_of_kernels_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let structs = ["RealsArg", "Frame", "CallerPositionsArg", "ProbeArg", "MediumArg", "StepBits"];
    let head = "The structs that kernels of direct sums, gathering and flows take.";
    let of_sums = kernels::generate(root, "src/backend/cuda/args.rs", &structs, None, head);
    up_to_date("kernels/args.cuh", &of_sums);
    let structs = ["TreeArg", "FmmArg", "CheckArg", "SampleSums", "StateHead"];
    let head = "The structs that kernels of the FMM take, and constants that the host shares with them.";
    let of_fmm = kernels::generate(root, "src/backend/cuda/fmm/args.rs", &structs, Some("fmm"), head);
    up_to_date("kernels/fmm_args.cuh", &of_fmm);
    let head = "The struct that kernels of exact sums by grids take, and constants that the host shares with them.";
    let of_grids = kernels::generate(root, "src/backend/cuda/fmm/grid_args.rs", &["GridArg"], Some("fmm"), head);
    up_to_date("kernels/fmm_grid_args.cuh", &of_grids);
    let structs = ["ViewArg", "LayerArg", "CanvasArg", "StyleArg", "PictureBits"];
    let head = "The structs that kernels of pictures take.";
    let of_pictures = kernels::generate(root, "src/backend/cuda/picture/args.rs", &structs, Some("picture"), head);
    up_to_date("kernels/picture_args.cuh", &of_pictures);
    let head = "The struct that kernels of narrower cores take.";
    let of_cores =
        kernels::generate(root, "src/backend/cuda/gaussians/args.rs", &["CellsArg"], Some("gaussians"), head);
    up_to_date("kernels/gaussians_args.cuh", &of_cores);
}

#[test]
#[should_panic(expected = "no counterpart in Fortran")]
fn an_unknown_type_stops_the_generator() {
    let mut model = model();
    model.functions[1].arguments[0].ty = "*mut u128".into();
    fortran::generate(&model);
}

/// Comments of the module are whole sentences of its own language; arrays that are written later are asynchronous.
#[test]
fn the_module_speaks_fortran() {
    let module = fortran::generate(&model());
    let procedures = module.split("\ncontains\n").nth(1).expect("procedures");
    let mut comment = String::new();
    for line in procedures.lines() {
        if let Some(text) = line.trim_start().strip_prefix("!> ") {
            comment += &format!("{text} ");
        } else if !comment.is_empty() {
            assert!(comment.ends_with(". "), "cut: {comment}");
            assert!(![" NULL", "sizeof", " *"].iter().any(|word| comment.contains(word)), "C: {comment}");
            comment.clear();
        }
    }
    let wide = module.split("subroutine wfmm_plan_set_segments_i64_f64(").nth(1).expect("point numbers of 64 bits");
    assert!(
        wide.split("end subroutine").next().expect("its text").contains("integer(c_int64_t), intent(in), contiguous")
    );
    let later =
        module.split("subroutine wfmm_plan_evaluate_async_f64(").nth(1).expect("async").split("status =").next();
    assert_eq!(later.expect("declarations").matches(", asynchronous").count(), 2);
}

#[test]
#[should_panic(expected = "speaks C")]
fn a_sentence_for_c_alone_stops_the_generator() {
    let mut model = model();
    model.functions.iter_mut().for_each(|f| f.doc = vec!["Sets `*out` to NULL.".into()]);
    fortran::generate(&model);
}

#[test]
fn both_files_carry_the_version_of_the_library() {
    let (mut major, mut minor, mut patch) = (-1, -1, -1);
    let status = unsafe { wakefmm::ffi::library::wfmm_version(&mut major, &mut minor, &mut patch) };
    assert_eq!(status, 0);
    let model = model();
    let module = fortran::generate(&model);
    for (part, number) in [("MAJOR", major), ("MINOR", minor), ("PATCH", patch)] {
        let constant = model.constants.iter().find(|c| c.name == format!("WFMM_VERSION_{part}")).expect(part);
        assert_eq!(constant.value, number.to_string());
        assert!(module.contains(&format!("integer, parameter :: WFMM_VERSION_{part} = {number}\n")), "{part}");
    }
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
