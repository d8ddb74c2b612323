//! The C API as data, read from the Rust sources: what header and Fortran module are made of.
//!
//! Enters: the files of `SOURCES`. Leaves: constants, structs and functions in order. The macros `codes!`, `api!` and
//! `twins!` of the library are read as the compiler reads them; anything unexpected stops the generator.

use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Ident, Item, Lit, LitInt, Meta, Token, Type, Visibility, braced, parenthesized};

/// What is computed: at the head of both files.
pub const SUMS: &str = include_str!("sums.txt");

/// In the order in which they appear in the header.
const SOURCES: [&str; 17] = [
    "src/error.rs",
    "src/options.rs",
    "src/report.rs",
    "src/flow/options.rs",
    "src/flow/diagnostics.rs",
    "src/flow/picture/camera.rs",
    "src/ffi/mod.rs",
    "src/ffi/library.rs",
    "src/ffi/session.rs",
    "src/ffi/communicator.rs",
    "src/ffi/plan.rs",
    "src/ffi/arrays.rs",
    "src/ffi/overlap.rs",
    "src/ffi/induce.rs",
    "src/ffi/flow.rs",
    "src/ffi/flow_arrays.rs",
    "src/ffi/picture.rs",
];

#[derive(Debug, Default)]
pub struct Model {
    pub constants: Vec<Constant>,
    pub structs: Vec<Struct>,
    pub functions: Vec<Function>,
}

#[derive(Debug)]
pub struct Constant {
    pub doc: Vec<String>,
    pub name: String,
    pub ty: String,
    pub value: String,
}

/// Without fields: a handle.
#[derive(Debug)]
pub struct Struct {
    pub doc: Vec<String>,
    pub name: String,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub doc: Vec<String>,
    pub name: String,
    pub ty: String,
}

#[derive(Debug, Clone)]
pub struct Function {
    pub doc: Vec<String>,
    pub name: String,
    /// The name without `_f32`/`_f64`, for one of a pair.
    pub generic: Option<String>,
    pub arguments: Vec<Argument>,
    pub result: String,
}

#[derive(Debug, Clone)]
pub struct Argument {
    pub name: String,
    /// As in Rust, `Real` resolved: `*const f64`.
    pub ty: String,
    /// Extents in Fortran's order; empty for a scalar.
    pub shape: Vec<String>,
    pub optional: bool,
}

pub fn read(root: &std::path::Path) -> Model {
    let mut model = Model::default();
    for source in SOURCES {
        let text = std::fs::read_to_string(root.join(source)).unwrap_or_else(|e| panic!("{source}: {e}"));
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{source}: {e}"));
        file.items.into_iter().for_each(|item| model.add(item, source));
    }
    model.constants.extend(version());
    model
}

/// The version in Cargo.toml, for hosts that must know it before they run.
fn version() -> impl Iterator<Item = Constant> {
    let parts = [
        ("MAJOR", "First", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", "Second", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", "Third", env!("CARGO_PKG_VERSION_PATCH")),
    ];
    parts.into_iter().map(|(part, which, value)| Constant {
        doc: vec![format!(
            "{which} number of the version that this file was made for; wfmm_version tells the loaded library's."
        )],
        name: format!("WFMM_VERSION_{part}"),
        ty: "i32".into(),
        value: value.to_owned(),
    })
}

impl Model {
    fn add(&mut self, item: Item, source: &str) {
        match item {
            Item::Macro(m) => {
                let tokens = m.mac.tokens;
                let fail = |e: syn::Error| -> ! { panic!("{source}: {e}") };
                match m.mac.path.to_token_stream().to_string().as_str() {
                    "codes" => self.constants.extend(syn::parse2::<Codes>(tokens).unwrap_or_else(|e| fail(e)).0),
                    "api" | "twins" => self.functions.extend(syn::parse2::<Api>(tokens).unwrap_or_else(|e| fail(e)).0),
                    _ => {}
                }
            }
            Item::Const(c) if is_public(&c.vis) && c.ident.to_string().starts_with("WFMM_") => {
                let Expr::Lit(value) = &*c.expr else { panic!("{}: a constant of the API is a literal", c.ident) };
                self.constants.push(Constant {
                    doc: docs(&c.attrs),
                    name: c.ident.to_string(),
                    ty: text(&c.ty),
                    value: value.to_token_stream().to_string(),
                });
            }
            Item::Struct(s) if is_public(&s.vis) && s.ident.to_string().starts_with("wfmm_") => {
                let public = s.fields.iter().filter(|f| is_public(&f.vis));
                let fields = public.map(|f| Field {
                    doc: docs(&f.attrs),
                    name: f.ident.as_ref().expect("named").to_string(),
                    ty: text(&f.ty),
                });
                self.structs.push(Struct { doc: docs(&s.attrs), name: s.ident.to_string(), fields: fields.collect() });
            }
            Item::Fn(f) if f.sig.abi.is_some() => self.functions.push(plain_function(f)),
            _ => {}
        }
    }
}

fn plain_function(f: syn::ItemFn) -> Function {
    let argument = |a: &syn::FnArg| {
        let syn::FnArg::Typed(a) = a else { panic!("{}: self", f.sig.ident) };
        Argument { name: text(&a.pat), ty: text(&a.ty), shape: Vec::new(), optional: false }
    };
    let syn::ReturnType::Type(_, result) = &f.sig.output else { panic!("{} returns nothing", f.sig.ident) };
    Function {
        doc: docs(&f.attrs),
        name: f.sig.ident.to_string(),
        generic: None,
        arguments: f.sig.inputs.iter().map(argument).collect(),
        result: text(result),
    }
}

struct Codes(Vec<Constant>);

impl Parse for Codes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut constants = Vec::new();
        while !input.is_empty() {
            let intro = docs(&Attribute::parse_outer(input)?);
            input.parse::<Token![enum]>()?;
            let _name: Ident = input.parse()?;
            let body;
            braced!(body in input);
            let mut first = true;
            while !body.is_empty() {
                let mut doc = docs(&Attribute::parse_outer(&body)?);
                if std::mem::take(&mut first) {
                    doc = [intro.clone(), vec![String::new()], doc].concat();
                }
                let _variant: Ident = body.parse()?;
                body.parse::<Token![=]>()?;
                let sign = if body.parse::<Option<Token![-]>>()?.is_some() { "-" } else { "" };
                let value: LitInt = body.parse()?;
                body.parse::<Token![=>]>()?;
                let name: Ident = body.parse()?;
                body.parse::<Token![,]>()?;
                constants.push(Constant {
                    doc,
                    name: name.to_string(),
                    ty: "i32".into(),
                    value: format!("{sign}{value}"),
                });
            }
        }
        Ok(Self(constants))
    }
}

struct Api(Vec<Function>);

impl Parse for Api {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut functions = Vec::new();
        while !input.is_empty() {
            let doc = docs(&Attribute::parse_outer(input)?);
            input.parse::<Token![fn]>()?;
            let name: Ident = input.parse()?;
            let double: Option<Ident> =
                if input.parse::<Option<Token![|]>>()?.is_some() { Some(input.parse()?) } else { None };
            let list;
            parenthesized!(list in input);
            let arguments: Vec<Argument> = list.parse_terminated(argument, Token![,])?.into_iter().collect();
            let _body: syn::Block = input.parse()?;
            let Some(double) = double else {
                functions.push(Function {
                    doc,
                    name: name.to_string(),
                    generic: None,
                    arguments,
                    result: "wfmm_status".into(),
                });
                continue;
            };
            let generic = name.to_string().strip_suffix("_f32").expect("the single twin ends in _f32").to_owned();
            assert_eq!(double.to_string(), format!("{generic}_f64"));
            for (kind, name) in [("f32", name), ("f64", double)] {
                let resolved =
                    arguments.iter().map(|a| Argument { ty: a.ty.replace("Real", kind), ..a.clone() }).collect();
                functions.push(Function {
                    doc: doc.clone(),
                    name: name.to_string(),
                    generic: Some(generic.clone()),
                    arguments: resolved,
                    result: "wfmm_status".into(),
                });
            }
        }
        Ok(Self(functions))
    }
}

fn argument(input: ParseStream<'_>) -> syn::Result<Argument> {
    let (mut shape, mut optional) = (Vec::new(), false);
    for attribute in Attribute::parse_outer(input)? {
        match &attribute.meta {
            Meta::Path(p) if p.is_ident("optional") => optional = true,
            Meta::List(l) if l.path.is_ident("shape") => {
                shape = l.tokens.to_string().split(',').map(|extent| extent.trim().to_owned()).collect();
            }
            other => return Err(syn::Error::new_spanned(other, "shape or optional")),
        }
    }
    let name: Ident = input.parse()?;
    input.parse::<Token![:]>()?;
    let ty: Type = input.parse()?;
    Ok(Argument { name: name.to_string(), ty: text(&ty), shape, optional })
}

fn is_public(v: &Visibility) -> bool {
    matches!(v, Visibility::Public(_))
}

fn docs(attributes: &[Attribute]) -> Vec<String> {
    let line = |a: &Attribute| match &a.meta {
        Meta::NameValue(m) if m.path.is_ident("doc") => match &m.value {
            Expr::Lit(e) => match &e.lit {
                Lit::Str(s) => Some(s.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

/// Tokens as a person writes them.
fn text(tokens: &impl ToTokens) -> String {
    let spaced = tokens.to_token_stream().to_string();
    spaced
        .replace("* const ", "*const ")
        .replace("* mut ", "*mut ")
        .replace(" ; ", "; ")
        .replace("[ ", "[")
        .replace(" ]", "]")
}
