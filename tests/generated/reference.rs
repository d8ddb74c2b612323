//! `docs/reference-fortran.md`: every public procedure of the module with its arguments, read from the module's own text.
//!
//! Twins for real(4) and real(8), and for point numbers of 64 bits, are one entry. Anything unexpected stops the generator,
//! and so does a public name without an entry.

const HEAD: &str = "# Fortran procedures\n\n\
    Generated from `fortran/wakefmm.f90` by `make generate`. `real` is `real(c_float)` or `real(c_double)`, all arrays of one call alike. \
    Point numbers are 32- or 64-bit integers. Statuses, constants and counts that are handed over are default integers, counts that come out `integer(c_int64_t)`. With `ierr` a call returns a status; \
    without it an error prints a message and stops, or calls the error handler. What arguments mean, with units: the function of the \
    same name in `wakefmm.h`.\n";

struct Entry {
    name: String,
    doc: String,
    /// What a function returns; of a subroutine nothing.
    result: Option<String>,
    /// The procedures that a generic name stands for, where they have entries of their own.
    stands_for: Vec<String>,
    arguments: Vec<[String; 4]>,
}

pub fn generate(module: &str) -> String {
    let procedures = module.split("\ncontains\n").nth(1).expect("procedures");
    let mut entries: Vec<Entry> = Vec::new();
    let (mut doc, mut lines) = (String::new(), procedures.lines());
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("  !> ") {
            doc += &format!("{text} ");
        } else if let Some(rest) = ["  subroutine wfmm_", "  function wfmm_"].iter().find_map(|s| line.strip_prefix(s))
        {
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
    let united = generics(module, &entries);
    entries.extend(united);
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for name in public(module) {
        assert!(entries.iter().any(|e| e.name == name), "{name} is public and has no entry");
    }
    HEAD.to_owned() + &entries.iter().map(text).collect::<String>()
}

/// Public names in lower case that are neither types nor the interface of a procedure of the host.
fn public(module: &str) -> Vec<&str> {
    let names = module.lines().filter_map(|l| l.strip_prefix("  public :: ")).flat_map(|l| l.split(", "));
    let types: Vec<_> =
        module.lines().filter(|l| l.starts_with("  type")).filter_map(|l| Some(l.split_once(" :: ")?.1)).collect();
    names.filter(|n| n.starts_with("wfmm_") && !types.contains(n) && *n != "wfmm_error_handler").collect()
}

/// Generic names for procedures that have entries under names of their own.
fn generics(module: &str, entries: &[Entry]) -> Vec<Entry> {
    let (mut doc, mut found, mut lines) = (String::new(), Vec::new(), module.lines());
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("  !> ") {
            doc += &format!("{text} ");
            continue;
        }
        if let Some(name) = line.strip_prefix("  interface ").filter(|n| entries.iter().all(|e| e.name != *n)) {
            let specifics = lines.by_ref().map_while(|l| l.strip_prefix("    module procedure "));
            let mut stands_for: Vec<_> = specifics.map(generic).collect();
            stands_for.sort();
            stands_for.dedup();
            let (name, doc, arguments) = (name.to_owned(), doc.trim().to_owned(), Vec::new());
            found.push(Entry { name, doc, result: None, stands_for, arguments });
        }
        doc.clear();
    }
    found
}

/// The generic name of one of the twins.
fn generic(name: &str) -> String {
    name.trim_end_matches("_f32").trim_end_matches("_f64").replace("_scalars", "").replace("_i64", "")
}

/// The entry of one procedure; none for the twins of others.
fn entry<'t>(signature: &str, doc: &str, lines: &mut impl Iterator<Item = &'t str>) -> Option<Entry> {
    let (signature, result) = signature.split_once(" result(").unwrap_or((signature, ""));
    let result = result.trim_end_matches(')');
    let (name, arguments) = signature.trim_end().trim_end_matches(')').split_once('(').expect("a list of arguments");
    let order: Vec<&str> = arguments.split(", ").filter(|a| !a.is_empty()).map(str::trim).collect();
    let (mut found, mut returned) = (vec![None; order.len()], None);
    for line in lines.by_ref() {
        let Some((ty, declared)) = line.trim_start().split_once(" :: ") else { break };
        let bare = declared.split('(').next().expect("a name");
        if let Some(at) = order.iter().position(|a| *a == bare) {
            found[at] = Some(row(ty, declared, bare));
        } else if bare == result {
            returned = Some(ty.to_owned());
        }
    }
    if name.ends_with("_f32") || name.contains("_i64") {
        return None;
    }
    let arguments =
        found.into_iter().zip(&order).map(|(row, a)| row.unwrap_or_else(|| panic!("{name}: {a} is not declared")));
    assert_eq!(returned.is_none(), result.is_empty(), "{name}: the result is not declared");
    let (name, doc) = (format!("wfmm_{}", generic(name)), doc.to_owned());
    Some(Entry { name, doc, result: returned, stands_for: Vec::new(), arguments: arguments.collect() })
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
    let mut text = format!("\n## {}\n\n{}\n", e.name, e.doc);
    if let Some(ty) = &e.result {
        text += &format!("\nA function, `{ty}`.\n");
    }
    if !e.stands_for.is_empty() {
        let links: Vec<_> = e.stands_for.iter().map(|name| format!("[{name}](#{name})")).collect();
        text += &format!("\nStands for {}.\n", links.join(" and "));
    }
    if !e.arguments.is_empty() {
        text += "\n| argument | type | shape | intent |\n|---|---|---|---|\n";
    }
    for [name, ty, shape, intent] in &e.arguments {
        let shape = if shape.is_empty() { String::new() } else { format!("`{shape}`") };
        text += &format!("| `{name}` | `{ty}` | {shape} | {intent} |\n");
    }
    text
}
