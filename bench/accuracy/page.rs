//! The page docs/accuracy.md: what an entry means, then a section a run. A run writes its own section again and keeps the others.

use super::table::{COLUMNS, LEAVES, Tally, Worst};
use crate::support::cases::Kind;
use std::process::Command;

const BEGINNING: &str = "# Measured error

Errors of fixed cases, divided by the tolerance: the FMM with gradients, compared with exact sums. `make accuracy` and, on a machine with a GPU, `make accuracy-gpu` write this page, a section for each back end and size.

Each entry is three numbers, of charges the potential's in place of the velocity's:

- **velocity, L2**: relative L2 error over all targets, divided by the tolerance. The promise is that it does not exceed 1.
- **velocity, max**: the largest error at one target, divided by the root mean square of the exact field and by the tolerance. No promise is made for it.
- **gradient, L2**: relative L2 error of the gradient over all targets, divided by 30 tolerances. The promise is that it does not exceed 1.

An entry is the worst over the regularizations and leaf sizes of its section. With a star, the library summed all of them directly.

- **Reference**: the direct sum in double precision of the same regularized kernel.
- **Cores**: from 2e-4 to 2e-2 of the box, one in ten zero. Those of the wake grow a hundredfold with age.
- **f64**: double precision arrays, in the precision that [the library chooses](tuning.md#single-precision). **f32**: single precision arrays; below 1e-4 the CPU computes them in double precision (in runs after 2026-11-26 particles alone in single where [that suffices](tuning.md#single-precision)). Both hold the same numbers.
- **f64 in f32**: double precision arrays with all their digits, computed with `WFMM_PRECISION_F32`; targets on middles have the numbers of the other columns.
- **GPU**: what [has no FMM there](gpu.md#smallest-tolerances-of-the-fmm) is summed directly: tolerances below 2e-7, with cores below 2e-7 to 3e-6 (in runs up to 2026-11-25 below 3e-6), and `WFMM_REG_OFFSET`.
- **V3**, **V4**: the levels of x86-64 with AVX2 and with AVX-512.
";

/// With commas between thousands.
fn grouped(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1000), n % 1000) }
}

fn today() -> String {
    let date = Command::new("date").arg("+%F").output().expect("the program date");
    String::from_utf8_lossy(&date.stdout).trim().to_owned()
}

/// The command of this run, without the file that it writes.
fn command() -> String {
    let arguments = std::env::args().skip(1).filter(|a| a.contains('=') && !a.starts_with("file="));
    let all: Vec<String> = std::iter::once("cargo bench --bench accuracy --".to_owned()).chain(arguments).collect();
    all.join(" ")
}

pub fn head() -> String {
    let names = COLUMNS.map(|(arrays, tolerance)| format!(" {} {tolerance:.0e} |", arrays.name()));
    format!("| sources and targets | elements |{}\n|---|---|{}\n", names.concat(), "---|".repeat(COLUMNS.len()))
}

/// First two columns of a row.
pub fn title(name: &str, kind: Kind, unit: f64) -> String {
    let scaled = if unit == 1.0 { String::new() } else { format!(", lengths × {unit:e}") };
    format!("{name}{scaled} | {}", format!("{kind:?}").to_lowercase())
}

/// A row's title in a sentence, as rows that were not begun are listed.
pub fn in_words(title: &str) -> String {
    title.replace(" |", ",")
}

pub fn line(title: &str, row: &[Worst]) -> String {
    let star = |w: &Worst| if w.has_fmm { "" } else { " *" };
    let entry = |w: &Worst| format!(" {:.2} / {:.2} / {:.2}{} |", w.velocity, w.largest, w.gradient, star(w));
    format!("| {title} |{}\n", row.iter().map(entry).collect::<String>())
}

/// The leaf sizes of a run, and which of the usual ones it leaves out.
fn leaves(taken: &[i32]) -> String {
    let name = |l: &i32| if *l == 0 { "the library's".to_owned() } else { l.to_string() };
    let names = |leaves: &[i32]| leaves.iter().map(name).collect::<Vec<_>>().join(" and ");
    let others: Vec<i32> = LEAVES.into_iter().filter(|l| !taken.contains(l)).collect();
    let rest = if others.is_empty() { String::new() } else { format!("; left out: {}", names(&others)) };
    names(taken) + &rest
}

/// The section of a run: heading, how it was made, table, what missed.
pub fn section(tally: &Tally, table: &str) -> String {
    let request = &tally.request;
    let name = |backend| if backend == "cuda" { "GPU" } else { "CPU" };
    let regularizations = if request.some_regularizations {
        "without cores, Vatistas cores of segments, Gauss-erf cores of particles; the other cores are left out"
    } else {
        "all six of segments, all seven of particles, three pairs of both"
    };
    let mut text = format!(
        "{}, {} sources\n\n- **Run**: {}, {}, `{}`\n- **Size**: {} sources, {} targets\n- **Exact sums**: by the {}\n\
         - **Regularizations**: {regularizations}\n- **Leaf sizes**: {}\n\n{table}\n{}",
        name(request.backend),
        grouped(request.sources),
        today(),
        tally.machine(),
        command(),
        grouped(request.sources),
        grouped(request.targets()),
        name(request.reference),
        leaves(&request.leaves),
        tally.summary()
    );
    let missed = tally.missed.iter().map(|m| format!("- over: {m}\n"));
    let left_out = tally.not_done.iter().map(|title| format!("- not begun: {}\n", in_words(title)));
    text.extend(missed.chain(left_out));
    text
}

/// Place of a section on the page: by back end, then by size.
fn place(section: &str) -> (String, usize) {
    let heading = section.lines().next().unwrap_or_default();
    let (backend, size) = heading.split_once(',').unwrap_or_default();
    let digits: String = size.chars().filter(char::is_ascii_digit).collect();
    (backend.to_owned(), digits.parse().unwrap_or_default())
}

/// The page with a section in place of that of the same back end and size.
pub fn with_section(page: &str, section: String) -> String {
    let others = page.split("\n## ").skip(1).map(|s| format!("{}\n", s.trim_end()));
    let mut sections: Vec<String> = others.filter(|s| place(s) != place(&section)).collect();
    sections.push(section);
    sections.sort_by_key(|s| place(s));
    sections.iter().fold(BEGINNING.to_owned(), |page, s| format!("{page}\n## {s}"))
}
