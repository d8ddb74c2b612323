//! `kernels/args.cuh` and the other `kernels/*args.cuh`: the structs that the host hands to kernels, as cbindgen writes them in C++.

use cbindgen::{Builder, Config, Language, RenameRule};
use std::path::Path;

/// Rust's integers as the kernels call them: their atomic functions know `long long`, which the header's types are not.
const INTEGERS: [(&str, &str); 5] = [
    ("uint64_t", "unsigned long long"),
    ("int64_t", "long long"),
    ("uint32_t", "unsigned"),
    ("int32_t", "int"),
    ("uint8_t", "unsigned char"),
];

/// The structs and constants of `source`, in `namespace` if there is one.
pub fn generate(root: &Path, source: &str, structs: &[&str], namespace: Option<&str>, head: &str) -> String {
    let mut config = Config {
        language: Language::Cxx,
        header: Some(format!("// {head}\n// Generated from {source} by `make generate`; do not edit.")),
        pragma_once: true,
        no_includes: true,
        includes: vec!["pointer.cuh".into()],
        namespace: namespace.map(str::to_owned),
        line_length: 140,
        tab_width: 4,
        ..Config::default()
    };
    config.documentation_style = cbindgen::DocumentationStyle::Cxx;
    config.constant.allow_constexpr = true;
    config.enumeration.rename_variants = RenameRule::None;
    config.export.include = structs.iter().map(|s| (*s).to_owned()).collect();
    config.export.rename =
        structs.iter().filter_map(|s| Some(((*s).to_owned(), s.strip_suffix("Arg")?.to_owned()))).collect();
    let bindings = Builder::new().with_config(config).with_src(root.join(source)).generate().expect("cbindgen");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let text = String::from_utf8(header).expect("a header is text");
    INTEGERS.iter().fold(text, |text, (rust, kernel)| text.replace(rust, kernel))
}
