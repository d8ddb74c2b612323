//! `docs/reference-fortran.md`: every public procedure of the module with its arguments, read from the module's own text.
//!
//! Twins for real(4) and real(8), and for point numbers of 64 bits, are one entry. Anything unexpected stops the generator.

const HEAD: &str = "# Fortran procedures\n\n\
    Generated from `fortran/wakefmm.f90` by `make generate`. `real` is `real(c_float)` or `real(c_double)`, all arrays of one call alike. \
    Point numbers are 32- or 64-bit integers. Statuses, constants and counts that are handed over are default integers, counts that come out `integer(c_int64_t)`. With `ierr` a call returns a status; \
    without it an error prints a message and stops, or calls the error handler. What arguments mean, with units: the function of the \
    same name in `wakefmm.h`.\n";

struct Entry {
    name: String,
    doc: String,
    arguments: Vec<[String; 4]>,
}

pub fn generate(module: &str) -> String {
    let procedures = module.split("\ncontains\n").nth(1).expect("procedures");
    let mut entries: Vec<Entry> = Vec::new();
    let (mut doc, mut lines) = (String::new(), procedures.lines());
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("  !> ") {
            doc += &format!("{text} ");
        } else if let Some(rest) = line.strip_prefix("  subroutine wfmm_") {
            let mut signature = rest.to_owned();
            while signature.ends_with('&') {
                signature.truncate(signature.len() - 1);
                signature += lines.next().expect("a continued line").trim_start();
            }
            entries.extend(entry(&signature, doc.trim(), &mut lines));
            doc.clear();
        } else {
            doc.clear();
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    HEAD.to_owned() + &entries.iter().map(text).collect::<String>()
}

/// The entry of one subroutine; none for the twins of others.
fn entry<'t>(signature: &str, doc: &str, lines: &mut impl Iterator<Item = &'t str>) -> Option<Entry> {
    let (name, arguments) = signature.trim_end().trim_end_matches(')').split_once('(').expect("a list of arguments");
    let order: Vec<&str> = arguments.split(", ").filter(|a| !a.is_empty()).map(str::trim).collect();
    let mut found = vec![None; order.len()];
    for line in lines.by_ref() {
        let Some((ty, declared)) = line.trim_start().split_once(" :: ") else { break };
        let bare = declared.split('(').next().expect("a name");
        if let Some(at) = order.iter().position(|a| *a == bare) {
            found[at] = Some(row(ty, declared, bare));
        }
    }
    if name.ends_with("_f32") || name.contains("_i64") {
        return None;
    }
    let arguments =
        found.into_iter().zip(&order).map(|(row, a)| row.unwrap_or_else(|| panic!("{name}: {a} is not declared")));
    let generic = name.trim_end_matches("_f64").replace("_scalars", "");
    Some(Entry { name: format!("wfmm_{generic}"), doc: doc.to_owned(), arguments: arguments.collect() })
}

/// Argument, type, shape, direction.
fn row(ty: &str, declared: &str, bare: &str) -> [String; 4] {
    let kind = ty.split(", ").next().expect("a type");
    let kind = if kind == "real(c_double)" && declared.contains('(') { "real" } else { kind };
    let direction = ["inout", "out", "in"].into_iter().find(|d| ty.contains(&format!("intent({d})"))).unwrap_or("in");
    let optional = if ty.contains("optional") { ", optional" } else { "" };
    let shape = declared.strip_prefix(bare).expect("the name comes first");
    [bare.to_owned(), kind.to_owned(), shape.to_owned(), format!("{direction}{optional}")]
}

fn text(e: &Entry) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n| argument | type | shape | intent |\n|---|---|---|---|\n", e.name, e.doc);
    for [name, ty, shape, intent] in &e.arguments {
        let shape = if shape.is_empty() { String::new() } else { format!("`{shape}`") };
        text += &format!("| `{name}` | `{ty}` | {shape} | {intent} |\n");
    }
    text
}
