//! `include/wakefmm.h`: the model written out as plain Rust declarations, which cbindgen turns into C.

use crate::model::{Function, Model, SUMS};

pub fn generate(model: &Model, root: &std::path::Path) -> String {
    let source = std::env::temp_dir().join(format!("wakefmm-api-{}.rs", std::process::id()));
    std::fs::write(&source, declarations(model)).expect("a temporary file");
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let sums: Vec<_> = SUMS.lines().map(|line| format!("   {line}")).collect();
    config.header = config.header.map(|head| head.replace("@sums@", &sums.join("\n")));
    let bindings = cbindgen::Builder::new().with_config(config).with_src(&source).generate().expect("cbindgen");
    let mut header = Vec::new();
    bindings.write(&mut header);
    std::fs::remove_file(&source).expect("the temporary file");
    String::from_utf8(header).expect("a header is text")
}

fn declarations(model: &Model) -> String {
    let mut out = String::new();
    for c in &model.constants {
        comment(&mut out, "", &c.doc);
        out += &format!("pub const {}: {} = {};\n", c.name, c.ty, c.value);
    }
    out += "/// Result of a call: 0 ok; 1..99 the caller's error, nothing changed; 100..199 a resource is missing, may be\n";
    out += "/// retried; negative: the object is unusable, only destroy is allowed. See WFMM_ERR_*.\n";
    out += "pub type wfmm_status = i32;\n";
    out += "/// Receives log lines: a WFMM_LOG_* level, a message that is valid during the call, and `user`.\n";
    out += "/// May be called from any thread; must not call wfmm_log_set.\n";
    out += "pub type wfmm_log_fn = Option<unsafe extern \"C\" fn(level: i32, message: *const c_char, user: *mut c_void)>;\n";
    out += "/// Adds the host's own velocity at n points of a flow: position and velocity are [n][3]; velocity holds what is there\n";
    out += "/// already. 0 goes on; another number stops the step. memory is WFMM_MEMORY_HOST and stream NULL while the state of\n";
    out += "/// flows is in host memory. user is that of wfmm_flow_set_velocity_callback.\n";
    out += "pub type wfmm_velocity_fn = Option<unsafe extern \"C\" fn(time: f64, n: i64, position: *const f64, velocity: *mut f64, memory: i32, stream: *mut c_void, user: *mut c_void) -> i32>;\n";
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
