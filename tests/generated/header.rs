//! `include/wakefmm.h`: the model written out as plain Rust declarations, which cbindgen turns into C.

use crate::model::{Function, Model, SUMS};

pub fn generate(model: &Model, root: &std::path::Path) -> String {
    let source = std::env::temp_dir().join(format!("wakefmm-api-{}.rs", std::process::id()));
    std::fs::write(&source, declarations(model, root)).expect("a temporary file");
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let sums: Vec<_> = SUMS.lines().map(|line| format!("   {line}")).collect();
    config.header = config.header.map(|head| head.replace("@sums@", &sums.join("\n")));
    let bindings = cbindgen::Builder::new().with_config(config).with_src(&source).generate().expect("cbindgen");
    let mut header = Vec::new();
    bindings.write(&mut header);
    std::fs::remove_file(&source).expect("the temporary file");
    String::from_utf8(header).expect("a header is text")
}

/// Types that are no structs, with their declarations; their comments are those of `src/ffi/mod.rs`.
const TYPES: [(&str, &str); 3] = [
    ("wfmm_status", "i32"),
    ("wfmm_log_fn", "Option<unsafe extern \"C\" fn(level: i32, message: *const c_char, user: *mut c_void)>"),
    (
        "wfmm_velocity_fn",
        "Option<unsafe extern \"C\" fn(time: f64, n: i64, position: *const f64, velocity: *mut f64, memory: i32, stream: *mut c_void, user: *mut c_void) -> i32>",
    ),
];

/// The comment of a type in `src/ffi/mod.rs`.
fn documentation(root: &std::path::Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("src/ffi/mod.rs")).expect("src/ffi/mod.rs");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|l| l.starts_with(&format!("pub type {name} "))).expect("the type");
    let begin = lines[..at].iter().rposition(|l| !l.starts_with("///")).map_or(0, |k| k + 1);
    lines[begin..at].iter().map(|l| l.trim_start_matches("///").trim().to_owned()).collect()
}

fn declarations(model: &Model, root: &std::path::Path) -> String {
    let mut out = String::new();
    for c in &model.constants {
        comment(&mut out, "", &c.doc);
        out += &format!("pub const {}: {} = {};\n", c.name, c.ty, c.value);
    }
    for (name, declaration) in TYPES {
        comment(&mut out, "", &documentation(root, name));
        out += &format!("pub type {name} = {declaration};\n");
    }
    for s in &model.structs {
        comment(&mut out, "", &s.doc);
        if s.fields.is_empty() {
            out += &format!("pub struct {} {{ _opaque: Opaque }}\n", s.name);
            continue;
        }
        out += &format!("#[repr(C)]\npub struct {} {{\n", s.name);
        for f in &s.fields {
            comment(&mut out, "    ", &f.doc);
            out += &format!("    pub {}: {},\n", f.name, f.ty);
        }
        out += "}\n";
    }
    model.functions.iter().for_each(|f| function(&mut out, f));
    out
}

fn function(out: &mut String, f: &Function) {
    comment(out, "", &f.doc);
    let arguments: Vec<String> = f.arguments.iter().map(|a| format!("{}: {}", a.name, a.ty)).collect();
    *out += &format!(
        "#[no_mangle]\npub unsafe extern \"C\" fn {}({}) -> {} {{}}\n",
        f.name,
        arguments.join(", "),
        f.result
    );
}

fn comment(out: &mut String, indent: &str, doc: &[String]) {
    doc.iter().for_each(|line| *out += &format!("{indent}/// {}\n", line.replace('`', "")));
}
