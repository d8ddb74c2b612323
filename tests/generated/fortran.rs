//! `fortran/wakefmm.f90`: the model written out as a Fortran 2018 module.
//!
//! Two layers: private `bind(C)` interfaces with assumed-size arrays, and the public procedures with assumed-shape
//! arrays, which take counts from the shapes, check them, and turn statuses into `ierr` or a stop. The tables of types
//! are closed: a type that they do not know stops the generator.

use std::collections::BTreeMap;

use crate::model::{Argument, Function, Model, SUMS, Struct};

/// Written by hand in `wakefmm.f90.in`, because C strings or functions have no mechanical counterpart.
const BY_HAND: [&str; 4] = ["wfmm_abi_version", "wfmm_status_name", "wfmm_last_error", "wfmm_last_error_set"];

/// A function whose arrays are all optional has no kind to choose by: one procedure for each of its arrays, and what it sets.
const SPLIT: [(&str, &str, &str, &str); 3] = [
    ("wfmm_plan_set_strengths", "circulation", "wfmm_plan_set_circulation", "circulations of the segments"),
    ("wfmm_plan_set_strengths", "strength", "wfmm_plan_set_strength", "strengths of the particles"),
    ("wfmm_plan_set_strengths", "charge", "wfmm_plan_set_charge", "charges"),
];
/// Those of them that a common generic name can tell apart, by rank.
const UNITED: (&str, [&str; 2]) = ("wfmm_plan_set_strengths", ["wfmm_plan_set_circulation", "wfmm_plan_set_strength"]);
const UNITED_NOTE: &str = "New strengths, same positions: a one-dimensional array is a circulation, never a charge \
    (wfmm_plan_set_charge); a two-dimensional one holds strengths of particles.";

/// Functions whose array has one or three numbers a row, as their argument `quantity` says: one procedure for each rank.
const VARIED: ([&str; 2], &str) = (["wfmm_flow_get", "wfmm_flow_get_selected"], "values");

/// Its arrays are written after it has returned.
const ASYNCHRONOUS: &str = "wfmm_plan_evaluate_async";
const ASYNCHRONOUS_NOTE: &str = "The arrays must be contiguous, else the status is WFMM_ERR_SHAPE, and be target or asynchronous \
    where they are declared.";

/// What a comment of the module must not say: NULL is an argument that is absent here.
const WORDS_OF_C: [&str; 4] = ["NULL", "sizeof", " *", "]["];

/// Point numbers: of 32 bits in C, of either width in Fortran (codes whose default integer has 64 bits).
const POINT_NUMBERS: &str = "connectivity";
const WIDE_NOTE: &str = "With point numbers of 64 bits, which are converted: the arrays must be in host memory.";

/// Numbers that a default integer does not hold.
const WIDE: [&str; 1] = ["bytes"];

const FRAME: &str = include_str!("wakefmm.f90.in");

pub fn generate(model: &Model) -> String {
    let procedures: Vec<Procedure<'_>> = model.functions.iter().flat_map(procedures).collect();
    FRAME
        .replace("@sums@\n", &SUMS.lines().map(|line| format!("!> {line}\n")).collect::<String>())
        .replace("@public@\n", &public(model, &procedures))
        .replace("@constants@\n", &constants(model))
        .replace("@abi@", &wakefmm::ffi::library::WFMM_ABI_VERSION.to_string())
        .replace("@types@\n", &types(model))
        .replace("@generics@\n", &generics(&procedures))
        .replace("@interfaces@\n", &interfaces(model))
        .replace("@procedures@\n", &procedures.iter().map(Procedure::text).collect::<String>())
}

/// A public procedure over one C function.
struct Procedure<'m> {
    function: &'m Function,
    /// Specific name.
    name: String,
    /// Public name; the specific one where there is nothing to choose.
    public: String,
    comment: String,
    /// The one array that is handed over, where the function was split.
    only: Option<&'static str>,
    /// Numbers a row of the array that holds vectors or scalars, as another argument says: `VARIED`.
    width: Option<u32>,
    /// Takes `POINT_NUMBERS` of 64 bits.
    wide: bool,
}

fn procedures(f: &Function) -> Vec<Procedure<'_>> {
    if BY_HAND.contains(&f.name.as_str()) {
        return Vec::new();
    }
    let suffix = if f.name.ends_with("_f32") { "_f32" } else { "_f64" };
    let split: Vec<_> = SPLIT.iter().filter(|(base, ..)| f.generic.as_deref() == Some(*base)).collect();
    if split.is_empty() {
        let public = f.generic.clone().unwrap_or_else(|| f.name.clone());
        let note = if public == ASYNCHRONOUS { format!(" {ASYNCHRONOUS_NOTE}") } else { String::new() };
        let comment = first_sentence(&f.name, &f.doc) + &note;
        let whole = |name: String, width| Procedure {
            function: f,
            name,
            public: public.clone(),
            comment: comment.clone(),
            only: None,
            width,
            wide: false,
        };
        if VARIED.0.contains(&&*public) {
            return vec![whole(f.name.clone(), Some(3)), whole(format!("{public}_scalars{suffix}"), Some(1))];
        }
        if f.arguments.iter().any(|a| a.name == POINT_NUMBERS) {
            let suffix = if f.generic.is_some() { suffix } else { "" };
            let (name, comment) = (format!("{public}_i64{suffix}"), format!("{comment} {WIDE_NOTE}"));
            return vec![whole(f.name.clone(), None), Procedure { wide: true, comment, ..whole(name, None) }];
        }
        return vec![whole(f.name.clone(), None)];
    }
    let one = |&&(_, array, public, what): &&(&str, &'static str, &str, &str)| Procedure {
        function: f,
        name: format!("{public}{suffix}"),
        public: public.to_owned(),
        comment: format!("Sets new {what} at the same positions; trees and lists are kept."),
        only: Some(array),
        width: None,
        wide: false,
    };
    split.iter().map(one).collect()
}

/// What an argument of a C function becomes in the public procedure.
#[derive(PartialEq)]
enum Role {
    /// `type(wfmm_plan)`, passed as its pointer.
    Handle,
    /// The same where it is optional, and where the function changes it.
    OptionalHandle,
    NewHandle,
    Array,
    /// A count: from an array's last extent, unless the caller says it. `Extent`: from a first extent.
    Count,
    Extent,
    Memory,
    Options,
    /// Written whole by the function.
    Struct,
    Number,
    Result,
    Text,
    /// A text that is handed over.
    Path,
    /// Capacity and length of a text.
    OfText,
    Size,
    Callback,
    Pointer,
}

fn role(f: &Function, at: usize) -> Role {
    let a = &f.arguments[at];
    let extents = || f.arguments.iter().filter(|o| !o.shape.is_empty());
    let after_text = |back: usize| at >= back && f.arguments[at - back].ty == "*mut c_char";
    match a.ty.as_str() {
        _ if !a.shape.is_empty() => Role::Array,
        ty if is_handle(ty) && a.optional => Role::OptionalHandle,
        ty if is_handle(ty) => Role::Handle,
        ty if is_new_handle(ty) => Role::NewHandle,
        ty if is_struct(ty) && ty.starts_with("*const") => Role::Options,
        ty if is_struct(ty) => Role::Struct,
        "i32" if a.name == "memory" => Role::Memory,
        "i64" if extents().any(|o| o.shape.last() == Some(&a.name)) => Role::Count,
        "i64" if extents().any(|o| o.shape.contains(&a.name)) => Role::Extent,
        "i32" | "i64" | "u64" | "f64" => Role::Number,
        "*mut i32" | "*mut i64" | "*mut u64" | "*mut f32" | "*mut f64" => Role::Result,
        "*mut c_char" => Role::Text,
        "*const c_char" => Role::Path,
        "usize" if after_text(1) => Role::OfText,
        "*mut usize" if after_text(2) => Role::OfText,
        "usize" => Role::Size,
        "wfmm_log_fn" | "wfmm_velocity_fn" => Role::Callback,
        "*mut c_void" => Role::Pointer,
        other => panic!("{}: {} of type {other} has no counterpart in Fortran", f.name, a.name),
    }
}

const HANDLES: [&str; 3] = ["wfmm_plan", "wfmm_session", "wfmm_flow"];
const STRUCTS: [&str; 7] = [
    "wfmm_plan_options",
    "wfmm_session_options",
    "wfmm_flow_options",
    "wfmm_report",
    "wfmm_diagnostics",
    "wfmm_camera",
    "wfmm_communicator",
];

fn is_handle(ty: &str) -> bool {
    ty.matches('*').count() == 1 && HANDLES.contains(&pointee(ty))
}

fn is_new_handle(ty: &str) -> bool {
    ty.starts_with("*mut *mut ") && HANDLES.contains(&pointee(ty))
}

fn is_struct(ty: &str) -> bool {
    ty.matches('*').count() == 1 && STRUCTS.contains(&pointee(ty))
}

/// Declaration in the `bind(C)` layer.
fn c_declaration(f: &Function, a: &Argument) -> String {
    let optional = if a.optional { ", optional" } else { "" };
    if is_asynchronous(f) && !a.shape.is_empty() {
        return format!("type(c_ptr), value :: {}", a.name);
    }
    let array = if a.shape.is_empty() { "" } else { "(*)" };
    let (ty, rest) = match a.ty.as_str() {
        "i32" | "wfmm_status" => ("integer(c_int32_t)", ", value".to_owned()),
        "i64" | "u64" => ("integer(c_int64_t)", ", value".into()),
        "usize" => ("integer(c_size_t)", ", value".into()),
        "*const i32" => ("integer(c_int32_t)", format!(", intent(in){optional}")),
        "*const f32" => ("real(c_float)", format!(", intent(in){optional}")),
        "*const f64" => ("real(c_double)", format!(", intent(in){optional}")),
        "*mut f32" => ("real(c_float)", format!(", intent(inout){optional}")),
        "*mut f64" => ("real(c_double)", format!(", intent(inout){optional}")),
        "*mut i32" => ("integer(c_int32_t)", format!(", intent(inout){optional}")),
        "*mut i64" | "*mut u64" => ("integer(c_int64_t)", format!(", intent(inout){optional}")),
        "*mut usize" => ("integer(c_size_t)", format!(", intent(inout){optional}")),
        "*mut c_char" => return format!("character(kind=c_char), intent(inout) :: {}(*)", a.name),
        "*const c_char" => return format!("character(kind=c_char), intent(in){optional} :: {}(*)", a.name),
        "*const u8" => ("integer(c_int8_t)", format!(", intent(in){optional}")),
        "*mut u8" => ("integer(c_int8_t)", format!(", intent(inout){optional}")),
        "f64" => ("real(c_double)", ", value".into()),
        "*const i64" => ("integer(c_int64_t)", format!(", intent(in){optional}")),
        ty if is_handle(ty) || ty == "*mut c_void" => ("type(c_ptr)", ", value".into()),
        ty if is_new_handle(ty) => ("type(c_ptr)", ", intent(inout)".into()),
        ty if is_struct(ty) => {
            let intent = if ty.starts_with("*const") {
                format!(", intent(in){optional}")
            } else {
                format!(", intent(inout){optional}")
            };
            return format!("type({}){intent} :: {}", pointee(ty), a.name);
        }
        "wfmm_log_fn" | "wfmm_velocity_fn" => ("type(c_funptr)", ", value".into()),
        other => panic!("{}: {} of type {other} has no counterpart in Fortran", f.name, a.name),
    };
    format!("{ty}{rest} :: {}{array}", a.name)
}

fn is_asynchronous(f: &Function) -> bool {
    f.generic.as_deref() == Some(ASYNCHRONOUS)
}

/// Of a description, the sentence that says what something is or does.
fn first_sentence(of: &str, doc: &[String]) -> String {
    let text = doc.join(" ").replace('`', "");
    let sentence = text.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned();
    let foreign = WORDS_OF_C.iter().find(|word| sentence.contains(**word));
    assert!(foreign.is_none(), "{of}: its first sentence speaks C: {sentence}");
    assert!(sentence.ends_with('.'), "{of}: its description has no sentence: {sentence}");
    sentence
}

/// A comment in lines of at most 120 columns.
fn comment(indent: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent.len() + "!> ".len() + line.len() + 1 + word.len() > 120 {
            out += &format!("{indent}!> {line}\n");
            line.clear();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    out + &format!("{indent}!> {line}\n")
}

fn c_result(f: &Function) -> &'static str {
    match f.result.as_str() {
        "wfmm_status" | "u32" => "integer(c_int32_t)",
        "*const c_char" => "type(c_ptr)",
        other => panic!("{} returns {other}, which has no counterpart in Fortran", f.name),
    }
}

fn interfaces(model: &Model) -> String {
    let mut out = String::from("  interface\n");
    for f in &model.functions {
        let names: Vec<&str> = f.arguments.iter().map(|a| a.name.as_str()).collect();
        let head =
            format!("    function c_{}({}) bind(c, name=\"{}\") result(outcome)", f.name, names.join(", "), f.name);
        out += &wrap(&head);
        out += "      import\n";
        for a in &f.arguments {
            out += &format!("      {}\n", c_declaration(f, a));
        }
        out += &format!("      {} :: outcome\n    end function\n\n", c_result(f));
    }
    out + "  end interface\n"
}

/// `*mut *mut wfmm_plan` → `wfmm_plan`.
fn pointee(ty: &str) -> &str {
    ty.rsplit(' ').next().expect("a type has a name")
}

impl Procedure<'_> {
    /// Name in Fortran of an argument: a new handle is called what it is.
    fn dummy(&self, a: &Argument) -> String {
        if a.name == "out" { pointee(&a.ty).trim_start_matches("wfmm_").to_owned() } else { a.name.clone() }
    }

    /// Arguments that are passed NULL because the function was split.
    fn is_left_out(&self, a: &Argument) -> bool {
        self.only.is_some_and(|only| !a.shape.is_empty() && a.name != only)
    }

    /// Whether a count belongs to an array that is handed over.
    fn is_counted(&self, a: &Argument) -> bool {
        self.function.arguments.iter().any(|o| !self.is_left_out(o) && o.shape.contains(&a.name))
    }

    /// Extents of an array here.
    fn shape<'s>(&self, a: &'s Argument) -> &'s [String] {
        if self.width == Some(1) && a.name == VARIED.1 { &a.shape[1..] } else { &a.shape }
    }

    /// Whether the function fills in the defaults of a struct, which differ here in `index_base`.
    fn has_defaults(&self, a: &Argument) -> bool {
        self.function.name.ends_with("_init") && pointee(&a.ty) != "wfmm_diagnostics"
    }

    fn is_optional(&self, a: &Argument) -> bool {
        a.optional && self.only != Some(a.name.as_str())
    }

    fn text(&self) -> String {
        let mut parts = Parts::default();
        for (at, a) in self.function.arguments.iter().enumerate() {
            self.argument(at, a, &mut parts);
        }
        let dummies =
            [parts.required.clone(), parts.optional.clone(), parts.late.clone(), vec!["ierr".into()]].concat();
        let mut out = String::from("\n");
        out += &comment("  ", &self.comment);
        out += &wrap(&format!("  subroutine {}({})", self.name, dummies.join(", ")));
        for line in &parts.declarations {
            out += &format!("    {line}\n");
        }
        out += "    integer, intent(out), optional :: ierr\n    integer(c_int32_t) :: status\n";
        parts.locals.iter().for_each(|line| out += &format!("    {line}\n"));
        out += "\n    status = WFMM_OK\n";
        for line in [&parts.counts, &parts.checks].into_iter().flatten() {
            out += &wrap(&format!("    {line}"));
        }
        let guard = if parts.checks.is_empty() { "" } else { "if (status == WFMM_OK) " };
        out += &wrap(&format!("    {guard}status = c_{}({})", self.function.name, self.actual(&parts)));
        parts.after.iter().for_each(|line| out += &wrap(&format!("    {line}")));
        out += "    call wfmm_finish(status, ierr)\n";
        out + "  end subroutine\n"
    }

    /// The actual arguments of the call; by keyword where some are left out.
    fn actual(&self, parts: &Parts) -> String {
        assert_eq!(parts.actual.len(), self.function.arguments.len(), "{}", self.name);
        let keyword = |a: &Argument| if self.only.is_some() { format!("{}=", a.name) } else { String::new() };
        let pairs = self.function.arguments.iter().zip(&parts.actual).filter(|(_, value)| !value.is_empty());
        pairs.map(|(a, value)| keyword(a) + value).collect::<Vec<_>>().join(", ")
    }

    fn argument(&self, at: usize, a: &Argument, parts: &mut Parts) {
        let name = self.dummy(a);
        let optional = if self.is_optional(a) { ", optional" } else { "" };
        match role(self.function, at) {
            Role::Handle => parts.required(
                &name,
                format!("type({}), intent(in) :: {name}", pointee(&a.ty)),
                format!("{name}%handle"),
            ),
            Role::NewHandle => {
                parts.required(
                    &name,
                    format!("type({}), intent(inout) :: {name}", pointee(&a.ty)),
                    format!("{name}%handle"),
                );
            }
            Role::OptionalHandle => {
                parts.optional(
                    &name,
                    format!("type({}), intent(in), optional :: {name}", pointee(&a.ty)),
                    format!("c_{name}"),
                );
                parts.locals.push(format!("type(c_ptr) :: c_{name}"));
                parts.counts.push(format!("c_{name} = c_null_ptr"));
                parts.counts.push(format!("if (present({name})) c_{name} = {name}%handle"));
                // Absent is NULL, the default; one that was not made, or no longer exists, is not.
                parts.checks.push(format!("if (present({name})) call need_handle(\"{name}\", c_{name}, status)"));
            }
            Role::Array => self.array(a, &name, optional, parts),
            Role::Count | Role::Extent if !self.is_counted(a) => parts.actual.push("0_c_int64_t".into()),
            Role::Count => {
                let first = self
                    .function
                    .arguments
                    .iter()
                    .find(|o| o.shape.last() == Some(&a.name) && !self.is_optional(o) && !self.is_left_out(o));
                let array = first.unwrap_or_else(|| panic!("{}: no array tells {}", self.name, a.name));
                parts.late(&name, format!("integer, intent(in), optional :: {name}"), format!("c_{name}"));
                parts.locals.push(format!("integer(c_int64_t) :: c_{name}"));
                let rank = self.shape(array).len();
                parts.counts.push(format!("c_{name} = size({}, {rank}, c_int64_t)", array.name));
                parts.counts.push(format!("if (present({name})) c_{name} = int({name}, c_int64_t)"));
            }
            Role::Extent => {
                let array = self
                    .function
                    .arguments
                    .iter()
                    .find(|o| o.shape.first() == Some(&a.name))
                    .expect("an array of that extent");
                parts.locals.push(format!("integer(c_int64_t) :: c_{name}"));
                parts.counts.push(format!("c_{name} = size({}, 1, c_int64_t)", array.name));
                parts.actual.push(format!("c_{name}"));
            }
            Role::Memory => {
                parts.late("memory", "integer, intent(in), optional :: memory".into(), "c_memory".into());
                parts.locals.push("integer(c_int32_t) :: c_memory".into());
                parts.counts.push("c_memory = WFMM_MEMORY_HOST".into());
                parts.counts.push("if (present(memory)) c_memory = int(memory, c_int32_t)".into());
            }
            Role::Options if !a.optional => {
                parts.required(&name, format!("type({}), intent(in) :: {name}", pointee(&a.ty)), name.clone())
            }
            Role::Options => {
                let ty = pointee(&a.ty);
                parts.optional(&name, format!("type({ty}), intent(in), optional :: {name}"), format!("c_{name}"));
                parts.locals.push(format!("type({ty}) :: c_{name}"));
                // Not NULL: defaults of the module differ from those of C in index_base.
                parts.counts.push(format!("if (present({name})) c_{name} = {name}"));
            }
            Role::Struct if self.has_defaults(a) => {
                let ty = pointee(&a.ty);
                parts.required(&name, format!("type({ty}), intent(out) :: {name}"), name.clone());
                parts.after.push(format!("if (status == WFMM_OK) {name} = {ty}()"));
            }
            Role::Struct => {
                let line = format!("type({}), intent(inout){optional} :: {name}", pointee(&a.ty));
                parts.given(optional.is_empty(), &name, line, name.clone());
            }
            Role::Size => {
                let of = &self.function.arguments[at - 1];
                parts.actual.push(format!("int({}%struct_size, c_size_t)", of.name));
            }
            Role::Number if WIDE.contains(&name.as_str()) => {
                parts.required(&name, format!("integer(c_int64_t), intent(in) :: {name}"), name.clone());
            }
            Role::Number if a.ty == "f64" => {
                parts.required(&name, format!("real(c_double), intent(in) :: {name}"), name.clone());
            }
            Role::Number => {
                let kind = if a.ty == "i32" { "c_int32_t" } else { "c_int64_t" };
                parts.required(&name, format!("integer, intent(in) :: {name}"), format!("int({name}, {kind})"));
            }
            Role::Result => {
                let ty = match a.ty.as_str() {
                    "*mut f32" => "real(c_float)",
                    "*mut f64" => "real(c_double)",
                    "*mut i32" => "integer(c_int32_t)",
                    _ => "integer(c_int64_t)",
                };
                let line = format!("{ty}, intent(inout){optional} :: {name}");
                parts.given(optional.is_empty(), &name, line, name.clone());
            }
            Role::Text => {
                parts.required("text", "character(len=:), allocatable, intent(out) :: text".into(), "c_text".into());
                parts.locals.push("character(kind=c_char) :: c_text(TEXT_LENGTH)".into());
                parts.locals.push("integer(c_size_t) :: length".into());
                parts.after.push("text = ''".into());
                parts.after.push("if (status == WFMM_OK) text = from_c(c_text, length)".into());
            }
            Role::Path if a.optional => {
                // Not allocated: absent for the interface below.
                parts.optional(&name, format!("character(len=*), intent(in), optional :: {name}"), format!("c_{name}"));
                parts.locals.push(format!("character(kind=c_char, len=:), allocatable :: c_{name}"));
                parts.counts.push(format!("if (present({name})) c_{name} = trim({name})//c_null_char"));
            }
            Role::Path => parts.required(
                &name,
                format!("character(len=*), intent(in) :: {name}"),
                format!("trim({name})//c_null_char"),
            ),
            Role::OfText => {
                parts.actual.push(if a.ty == "usize" { "int(TEXT_LENGTH, c_size_t)" } else { "length" }.into())
            }
            Role::Callback => {
                parts.optional(&name, format!("type(c_funptr), intent(in), optional :: {name}"), format!("c_{name}"));
                parts.locals.push(format!("type(c_funptr) :: c_{name}"));
                parts.counts.push(format!("c_{name} = c_null_funptr"));
                parts.counts.push(format!("if (present({name})) c_{name} = {name}"));
            }
            Role::Pointer if !a.optional => {
                parts.required(&name, format!("type(c_ptr), intent(in) :: {name}"), name.clone());
            }
            Role::Pointer => {
                parts.optional(&name, format!("type(c_ptr), intent(in), optional :: {name}"), format!("c_{name}"));
                parts.locals.push(format!("type(c_ptr) :: c_{name}"));
                parts.counts.push(format!("c_{name} = c_null_ptr"));
                parts.counts.push(format!("if (present({name})) c_{name} = {name}"));
            }
        }
    }

    fn array(&self, a: &Argument, name: &str, optional: &str, parts: &mut Parts) {
        if self.is_left_out(a) {
            // Absent for the interface below: NULL.
            parts.actual.push(String::new());
            return;
        }
        let wide = self.wide && a.name == POINT_NUMBERS;
        let ty = match pointee(&a.ty) {
            "i32" if wide => "integer(c_int64_t)",
            "i32" => "integer(c_int32_t)",
            "i64" => "integer(c_int64_t)",
            "u8" => "integer(c_int8_t)",
            "f32" => "real(c_float)",
            "f64" => "real(c_double)",
            other => panic!("{}: an array of {other} has no counterpart in Fortran", self.name),
        };
        let intent = if a.ty.starts_with("*mut") { "inout" } else { "in" };
        let rank = vec![":"; self.shape(a).len()].join(",");
        let is_asynchronous = is_asynchronous(self.function);
        // Contiguous: the compiler makes a temporary of what is not, which must not be where the array is written later.
        let attributes = if is_asynchronous { "target, asynchronous" } else { "contiguous" };
        let line = format!("{ty}, intent({intent}), {attributes}{optional} :: {name}({rank})");
        let actual = if wide || is_asynchronous { format!("c_{name}") } else { name.to_owned() };
        parts.given(optional.is_empty(), name, line, actual);
        let extents: Vec<String> = self.shape(a).iter().map(|e| self.extent(e, parts)).collect();
        let present = if optional.is_empty() { String::new() } else { format!("if (present({name})) ") };
        let may_be_longer = self.may_be_longer(a, intent);
        let needed = extents.join(", ");
        let check = format!("call need(\"{name}\", shape({name}, c_int64_t), [{needed}], {may_be_longer}, status)");
        parts.checks.push(format!("{present}{check}"));
        if is_asynchronous {
            parts.checks.push(format!("{present}call need_contiguous(\"{name}\", is_contiguous({name}), status)"));
            parts.locals.push(format!("type(c_ptr) :: c_{name}"));
            parts.counts.push(format!("c_{name} = c_null_ptr"));
            let first = vec!["1"; self.shape(a).len()].join(",");
            let address = format!("if (size({name}) > 0) c_{name} = c_loc({name}({first}))");
            if optional.is_empty() {
                parts.counts.push(address);
            } else {
                parts.counts.extend([format!("if (present({name})) then"), format!("  {address}"), "end if".into()]);
            }
        }
        if wide {
            self.narrow(a, name, &extents, parts);
        }
        if let Some(width) = self.width.filter(|_| a.name == VARIED.1) {
            parts.checks.push(format!("call need_width(quantity, {width}, status)"));
        }
    }

    /// Whether an array may be longer than its count, as a Fortran expression: outputs may, inputs where the caller gives the count.
    fn may_be_longer(&self, a: &Argument, intent: &str) -> String {
        let count = self.shape(a).last().filter(|_| intent == "in");
        let count = count.filter(|e| self.function.arguments.iter().any(|o| o.name == **e && o.ty == "i64"));
        count.map_or(".true.".into(), |e| format!("present({e})"))
    }

    /// Converts point numbers of 64 bits to the 32 of C, or back where the function writes them.
    fn narrow(&self, a: &Argument, name: &str, extents: &[String], parts: &mut Parts) {
        let somewhere = (0..self.function.arguments.len()).any(|at| role(self.function, at) == Role::Memory);
        let memory = if somewhere { "c_memory" } else { "int(WFMM_MEMORY_HOST, c_int32_t)" };
        parts.locals.push(format!("integer(c_int32_t), allocatable :: c_{name}(:,:)"));
        let [rows, count] = extents else { panic!("{}: {name} is no matrix", self.name) };
        if a.ty.starts_with("*mut") {
            parts.checks.push(format!("call room(\"{name}\", {rows}, {count}, {memory}, c_{name}, status)"));
            parts.after.push(format!("call widen(c_{name}, {name}, status)"));
        } else {
            parts.checks.push(format!("call narrow(\"{name}\", {name}, {count}, {memory}, c_{name}, status)"));
        }
    }

    /// An extent as a Fortran expression; one that is no argument is the plan's number of targets.
    fn extent(&self, extent: &str, parts: &mut Parts) -> String {
        if extent.parse::<u32>().is_ok() {
            return format!("{extent}_c_int64_t");
        }
        if self.function.arguments.iter().any(|a| a.name == extent && a.ty == "i32") {
            return format!("int({extent}, c_int64_t)");
        }
        let count = format!("c_{extent}");
        if !self.function.arguments.iter().any(|a| a.name == extent)
            && !parts.locals.iter().any(|l| l.ends_with(&count))
        {
            assert_eq!(extent, "n_targets", "{}: nothing tells {extent}", self.name);
            parts.locals.push("integer(c_int64_t) :: c_n_targets".into());
            parts.counts.push("c_n_targets = 0".into());
            parts.counts.push("status = c_wfmm_plan_counts(plan%handle, n_targets=c_n_targets)".into());
        }
        count
    }
}

/// The pieces of a procedure, collected argument by argument.
#[derive(Default)]
struct Parts {
    required: Vec<String>,
    /// Optional arrays and options; then optional counts and `memory`.
    optional: Vec<String>,
    late: Vec<String>,
    declarations: Vec<String>,
    locals: Vec<String>,
    counts: Vec<String>,
    checks: Vec<String>,
    actual: Vec<String>,
    after: Vec<String>,
}

impl Parts {
    fn required(&mut self, name: &str, declaration: String, actual: String) {
        self.required.push(name.to_owned());
        self.declarations.push(declaration);
        self.actual.push(actual);
    }

    fn late(&mut self, name: &str, declaration: String, actual: String) {
        self.late.push(name.to_owned());
        self.declarations.push(declaration);
        self.actual.push(actual);
    }

    fn given(&mut self, always: bool, name: &str, declaration: String, actual: String) {
        if always { self.required(name, declaration, actual) } else { self.optional(name, declaration, actual) }
    }

    fn optional(&mut self, name: &str, declaration: String, actual: String) {
        self.optional.push(name.to_owned());
        self.declarations.push(declaration);
        self.actual.push(actual);
    }
}

fn constants(model: &Model) -> String {
    let mut out = String::new();
    for c in model.constants.iter().filter(|c| !is_taken(&c.name)) {
        let doc = c.doc.iter().filter(|l| !l.is_empty()).map(|l| format!("  !> {}\n", l.replace('`', "")));
        out += &doc.collect::<String>();
        let line = match c.ty.as_str() {
            // Default integers, so that they go wherever an ordinary integer does.
            "i32" | "u32" | "usize" => format!("integer, parameter :: {} = {}", c.name, c.value),
            "u64" => format!("integer(c_int64_t), parameter :: {} = {}_c_int64_t", c.name, c.value),
            "f64" => format!("real(c_double), parameter :: {} = {}_c_double", c.name, c.value),
            other => panic!("{}: a constant of type {other} has no counterpart in Fortran", c.name),
        };
        out += &format!("  {line}\n");
    }
    out
}

/// Fortran does not tell WFMM_ABI_VERSION from wfmm_abi_version: the frame has it by another name.
fn is_taken(name: &str) -> bool {
    name == "WFMM_ABI_VERSION"
}

fn types(model: &Model) -> String {
    model.structs.iter().map(|s| if s.fields.is_empty() { handle(s) } else { structure(s) }).collect()
}

fn handle(s: &Struct) -> String {
    let name = &s.name;
    let doc = comment("  ", &s.doc.join(" ").replace('`', ""));
    format!("\n{doc}  type :: {name}\n    private\n    type(c_ptr) :: handle = c_null_ptr\n  end type\n")
}

/// A struct of numbers with the defaults that its `_options_init` gives, but points counted from 1.
fn structure(s: &Struct) -> String {
    let mut out = format!("\n{}  type, bind(c) :: {}\n", comment("  ", &first_sentence(&s.name, &s.doc)), s.name);
    let size: usize = s.fields.iter().map(|f| width(&f.ty)).sum();
    for f in &s.fields {
        out += &comment("    ", &f.doc.join(" ").replace('`', ""));
        let value = if f.name == "struct_size" { format!("{size}") } else { default_of(&s.name, &f.name) };
        let line = match f.ty.as_str() {
            "u32" | "i32" => format!("integer(c_int32_t) :: {} = {value}", f.name),
            "i64" | "u64" => format!("integer(c_int64_t) :: {} = {value}", f.name),
            "f64" => format!("real(c_double) :: {} = {value}", f.name),
            "*mut c_void" | "*const i32" => format!("type(c_ptr) :: {} = c_null_ptr", f.name),
            ty if ty.starts_with("Option <") => format!("type(c_funptr) :: {} = c_null_funptr", f.name),
            "[f64; WFMM_PASS_COUNT]" => format!("real(c_double) :: {}(0:WFMM_PASS_COUNT-1) = 0", f.name),
            _ if numbers(&f.ty) > 1 => format!("real(c_double) :: {}({}) = {value}", f.name, numbers(&f.ty)),
            other => panic!("{}%{}: type {other} has no counterpart in Fortran", s.name, f.name),
        };
        out += &format!("    {line}\n");
    }
    out + "  end type\n"
}

fn width(ty: &str) -> usize {
    match ty {
        "u32" | "i32" => 4,
        "[f64; WFMM_PASS_COUNT]" => 8 * wakefmm::report::WFMM_PASS_COUNT,
        _ => 8 * numbers(ty),
    }
}

/// How many numbers a field holds: `[f64; 3]` three, a scalar one.
fn numbers(ty: &str) -> usize {
    let extent = ty.strip_prefix("[f64; ").and_then(|rest| rest.strip_suffix(']'));
    extent.and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Defaults come from the Rust structs themselves.
fn default_of(name: &str, field: &str) -> String {
    let session = wakefmm::options::wfmm_session_options::default();
    let plan = wakefmm::options::wfmm_plan_options::default();
    let flow = wakefmm::flow::options::wfmm_flow_options::default();
    let camera = wakefmm::flow::picture::camera::wfmm_camera::default();
    let real = |x: f64| format!("{x:e}_c_double");
    let reals = |all: &[f64]| format!("[{}]", all.iter().map(|x| real(*x)).collect::<Vec<_>>().join(", "));
    let value = match (name, field) {
        ("wfmm_report" | "wfmm_diagnostics" | "wfmm_communicator", _) => 0,
        ("wfmm_flow_options", "integrator") => flow.integrator,
        ("wfmm_flow_options", "stretching") => flow.stretching,
        ("wfmm_flow_options", "spreading") => flow.spreading,
        ("wfmm_flow_options", "flags") => flow.flags as i32,
        ("wfmm_flow_options", "viscosity") => return real(flow.viscosity),
        ("wfmm_flow_options", "squire") => return real(flow.squire),
        ("wfmm_flow_options", "core_limit") => return real(flow.core_limit),
        ("wfmm_flow_options", "split_length") => return real(flow.split_length),
        ("wfmm_flow_options", "gravity") => return real(flow.gravity[0]),
        ("wfmm_flow_options", "fluid_density") => return real(flow.fluid_density),
        ("wfmm_flow_options", "fluid_viscosity") => return real(flow.fluid_viscosity),
        ("wfmm_flow_options", "restitution") => return real(flow.restitution),
        ("wfmm_flow_options", "friction") => return real(flow.friction),
        ("wfmm_flow_options", "reserved") => return real(flow.reserved[0]),
        ("wfmm_camera", "projection") => camera.projection,
        ("wfmm_camera", "color") => camera.color,
        ("wfmm_camera", "blending") => camera.blending,
        ("wfmm_camera", "kinds") => camera.kinds,
        ("wfmm_camera", "fit") => camera.fit,
        ("wfmm_camera", "eye") => return reals(&camera.eye),
        ("wfmm_camera", "target") => return reals(&camera.target),
        ("wfmm_camera", "up") => return reals(&camera.up),
        ("wfmm_camera", "field_of_view") => return real(camera.field_of_view),
        ("wfmm_camera", "view_height") => return real(camera.view_height),
        ("wfmm_camera", "near_distance") => return real(camera.near_distance),
        ("wfmm_camera", "point_size") => return real(camera.point_size),
        ("wfmm_camera", "line_width") => return real(camera.line_width),
        ("wfmm_camera", "opacity") => return real(camera.opacity),
        ("wfmm_camera", "color_range") => return reals(&camera.color_range),
        ("wfmm_camera", "background") => return reals(&camera.background),
        ("wfmm_camera", "grid") => return real(camera.grid),
        ("wfmm_session_options", "backend") => session.backend,
        ("wfmm_session_options", "device") => session.device,
        ("wfmm_session_options", "threads") => session.threads,
        ("wfmm_session_options", "flags") => session.flags as i32,
        ("wfmm_session_options", "n_devices") => session.n_devices,
        ("wfmm_session_options", "reserved" | "devices") => 0,
        ("wfmm_plan_options", "method") => plan.method,
        ("wfmm_plan_options", "precision") => plan.precision,
        ("wfmm_plan_options", "order") => plan.order,
        ("wfmm_plan_options", "leaf_capacity") => plan.leaf_capacity,
        ("wfmm_plan_options", "segment_regularization") => plan.segment_regularization,
        ("wfmm_plan_options", "particle_regularization") => plan.particle_regularization,
        ("wfmm_plan_options", "index_base") => 1,
        ("wfmm_plan_options", "flags") => plan.flags as i32,
        ("wfmm_plan_options", "tolerance") => return format!("{:e}_c_double", plan.tolerance),
        ("wfmm_plan_options", "normalization") => return format!("{:e}_c_double", plan.normalization),
        ("wfmm_plan_options", "core_radius") => return format!("{:e}_c_double", plan.core_radius),
        ("wfmm_plan_options", "plane_axis") => plan.plane_axis,
        ("wfmm_plan_options", "expansion") => plan.expansion,
        ("wfmm_plan_options", "plane_position") => return format!("{:e}_c_double", plan.plane_position),
        ("wfmm_plan_options", "period") => return format!("{:e}_c_double", plan.period[0]),
        _ => panic!("{name}%{field}: no default is known"),
    };
    value.to_string()
}

/// Public name → its specifics.
fn families(procedures: &[Procedure<'_>]) -> BTreeMap<String, Vec<String>> {
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for p in procedures {
        families.entry(p.public.clone()).or_default().push(p.name.clone());
        if UNITED.1.contains(&p.public.as_str()) {
            families.entry(UNITED.0.to_owned()).or_default().push(p.name.clone());
        }
    }
    families
}

fn generics(procedures: &[Procedure<'_>]) -> String {
    let interface = |(name, specifics): (&String, &Vec<String>)| {
        let list: String = specifics.iter().map(|s| format!("    module procedure {s}\n")).collect();
        let note = if name == UNITED.0 { comment("  ", UNITED_NOTE) } else { String::new() };
        format!("{note}  interface {name}\n{list}  end interface\n")
    };
    families(procedures)
        .iter()
        .filter(|(name, specifics)| specifics.len() > 1 || specifics[0] != **name)
        .map(interface)
        .collect()
}

fn public(model: &Model, procedures: &[Procedure<'_>]) -> String {
    let types = model.structs.iter().map(|s| s.name.clone());
    let constants = model.constants.iter().map(|c| c.name.clone()).filter(|name| !is_taken(name));
    let line = |name: String| format!("  public :: {name}\n");
    types.chain(families(procedures).into_keys()).chain(constants).map(line).collect()
}

/// Breaks a statement at commas where it would pass 120 columns.
fn wrap(statement: &str) -> String {
    let indent = statement.len() - statement.trim_start().len();
    let mut out = String::new();
    let mut line = String::new();
    for piece in statement.split_inclusive(", ") {
        if line.len() + piece.len() > 116 {
            out += &format!("{}&\n", line);
            line = format!("{}  ", " ".repeat(indent));
        }
        line += piece;
    }
    out + &line + "\n"
}
