//! Arguments of the form `key=value` that all programs take.

use wakefmm::options::*;

pub fn argument(key: &str) -> Option<String> {
    std::env::args().find_map(|a| a.strip_prefix(&format!("{key}=")).map(str::to_owned))
}

pub fn number(key: &str, default: f64) -> f64 {
    argument(key).map_or(default, |v| v.parse().expect("a number"))
}

/// `precision=f32` or `f64`; else the library's choice for the arrays.
pub fn precision() -> i32 {
    match argument("precision").as_deref() {
        Some("f32") => WFMM_PRECISION_F32,
        Some("f64") => WFMM_PRECISION_F64,
        None => WFMM_PRECISION_ARRAYS,
        Some(other) => panic!("precision={other}: f32 or f64"),
    }
}

/// One of a few words; the first where the argument is missing.
pub fn one_of(key: &str, words: &[&'static str]) -> &'static str {
    let Some(given) = argument(key) else { return words[0] };
    words.iter().find(|w| **w == given).unwrap_or_else(|| panic!("{key}={given}: one of {words:?}"))
}
