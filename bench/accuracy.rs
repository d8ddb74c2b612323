//! The tables of docs/accuracy.md: measured error over tolerance for every distribution, regularization and precision.
//!
//! `make accuracy` and `make accuracy-gpu` run it. Arguments: `name=TEXT` distributions that contain it, `from=TEXT` the first row
//! that contains it (named as in the list of rows not begun) and all after it, `n=COUNT` sources, `backend=cpu|cuda` whose fields
//! are measured, `reference=cpu|cuda` who sums directly, `regularizations=all|some`, `leaves=0,24` leaf capacities, 0 being the
//! library's, `seconds=` after which no row is begun, `file=PATH` page of which a section is written. Every entry is the worst over
//! these regularizations and leaves; small leaves make the tree deep. Ends with a failure where a tolerance was missed or a row was
//! not begun.

mod accuracy {
    pub mod page;
    pub mod table;
}
mod support;

use accuracy::page;
use accuracy::table::{Request, Tally};
use std::time::{Duration, Instant};
use support::arguments::{argument, number};
use support::cases::{DISTRIBUTIONS, Kind};

/// Every distribution with its unit of length.
fn distributions() -> impl Iterator<Item = (&'static str, f64)> {
    DISTRIBUTIONS.map(|d| (d, 1.0)).into_iter().chain([("helical wake", 1e-6), ("helical wake", 1e6)])
}

fn main() {
    let name_part = argument("name").unwrap_or_default();
    let from = argument("from").unwrap_or_default();
    let mut begun = false;
    let end = Instant::now() + Duration::from_secs_f64(number("seconds", 1e6));
    let mut tally = Tally::new(Request::of_arguments());
    let mut table = page::head();
    for (name, unit) in distributions().filter(|(name, _)| name.contains(&name_part)) {
        for kind in [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges] {
            let (title, begin) = (page::title(name, kind, unit), Instant::now());
            begun |= page::in_words(&title).contains(&from);
            if !begun {
                continue;
            }
            if begin > end {
                tally.not_done.push(title);
                continue;
            }
            let line = page::line(&title, &tally.row(name, kind, unit));
            println!("{} {:.1} s", line.trim_end(), begin.elapsed().as_secs_f64());
            table += &line;
        }
    }
    assert!(begun || from.is_empty(), "from={from}: no row has this name");
    println!("{}", tally.summary());
    if let Some(file) = argument("file") {
        let section = page::section(&tally, &table);
        // A page that is not there yet has no other sections.
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(&file, page::with_section(&before, section)).expect("the page can be written");
    }
    std::process::exit(!tally.passed() as i32);
}
