//! Preprocessed CUDA C++ to C++, where macros are not enough: kernels, variables in shared memory, PTX,
//! loops that wait.

/// A kernel by its name, and the blocks of a cluster.
pub struct Kernel {
    pub name: String,
    pub cluster: u32,
}

/// The text as C++, and its kernels, which are plain functions now.
pub fn translate(text: &str) -> (String, Vec<Kernel>) {
    let (text, kernels) = functions(text);
    // The host's own headers come first.
    let (headers, unit) = text.split_at(text.find("namespace unit_").expect("a unit"));
    (headers.to_owned() + &waits(&ptx(&shared(unit))), kernels)
}

fn functions(text: &str) -> (String, Vec<Kernel>) {
    let mut kernels = Vec::new();
    let mut parts = text.split("WFMM_GLOBAL");
    let mut out = parts.next().unwrap_or_default().trim_end().trim_end_matches("extern \"C\"").to_owned();
    for part in parts {
        let head = part.split('(').next().unwrap_or_default();
        let shape = head.split_whitespace().find_map(|word| word.strip_prefix("WFMM_CLUSTER_"));
        let cluster = shape.map_or(1, |shape| along_x(shape).expect("a cluster along x"));
        let name = head.split_whitespace().last().unwrap_or_default().to_owned();
        let rest = part.trim_end().trim_end_matches("extern \"C\"");
        out += &shape.map_or(rest.to_owned(), |shape| rest.replacen(&format!("WFMM_CLUSTER_{shape}"), "", 1));
        out.push('\n');
        kernels.push(Kernel { name, cluster });
    }
    (out, kernels)
}

fn along_x(shape: &str) -> Option<u32> {
    shape.strip_suffix("_1_1")?.parse().ok()
}

/// Variables in shared memory as references into the shared memory of the block.
fn shared(text: &str) -> String {
    let mut parts = text.split("WFMM_SHARED");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (declaration, rest) = part.split_once(';').expect("a declaration");
        if let Some(before) = out.trim_end().strip_suffix("extern") {
            let name = last_name(declaration.split('[').next().unwrap_or_default());
            out = format!("{before}unsigned char *const {name} = emulated::dynamic_memory();");
        } else {
            let declared = at_top(declaration, ',');
            let first = declared[0];
            let dimensions = first.find('[').unwrap_or(first.len());
            let kind = first[..dimensions].trim_end().strip_suffix(last_name(&first[..dimensions])).unwrap_or_default();
            let all = std::iter::once(&first[kind.len()..]).chain(declared[1..].iter().copied());
            out.extend(all.map(|declarator| variable(kind, declarator.trim())));
        }
        out += rest;
    }
    out
}

fn variable(kind: &str, declarator: &str) -> String {
    let (name, dimensions) = declarator.split_at(declarator.find('[').unwrap_or(declarator.len()));
    format!(
        "typedef {kind} {name}_type{dimensions}; static char {name}_id; {name}_type &{name} = \
         *({name}_type *)emulated::variable(&{name}_id, sizeof({name}_type), alignof({name}_type)); "
    )
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn last_name(text: &str) -> &str {
    let text = text.trim_end();
    &text[text.rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1)..]
}

/// Parts between separators that are in no brackets.
fn at_top(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        depth += i32::from("([<".contains(c)) - i32::from(")]>".contains(c));
        if c == separator && depth == 0 {
            parts.push(&text[from..at]);
            from = at + 1;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// `asm("add.u32 %0, %1, 3;" : "=r"(a) : "r"(b))` as `emulated::add_u32(a, b)`; an empty one, which only the compiler heeds, stays.
fn ptx(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("asm") {
        let (before, from) = rest.split_at(at);
        let statement = from["asm".len()..].trim_start();
        let statement = statement.strip_prefix("volatile").unwrap_or(statement).trim_start();
        out += before;
        rest = &from["asm".len()..];
        let inside = statement.strip_prefix("(\"").filter(|inside| inside.starts_with(char::is_alphabetic));
        match inside.filter(|_| !before.ends_with(is_of_name)) {
            Some(inside) => rest = call(inside, &mut out),
            None => out += "asm",
        }
    }
    out + rest
}

/// Writes the call for what begins with the instruction, and returns what follows.
fn call<'a>(inside: &'a str, out: &mut String) -> &'a str {
    let (instruction, operands) = inside.split_once('"').expect("the end of an instruction");
    let (mut expressions, mut depth, mut from, mut end) = (Vec::new(), 0, 0, 0);
    for (at, c) in operands.char_indices() {
        if c == '(' && depth == 0 {
            from = at + 1;
        }
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            end = at + 1;
            break;
        }
        if c == ')' && depth == 0 {
            expressions.push(&operands[from..at]);
        }
    }
    let (name, numbers) = instruction.split_at(instruction.find([' ', ';']).expect("the end of a name"));
    let indices =
        numbers.split('%').skip(1).map(|number| number.chars().take_while(char::is_ascii_digit).collect::<String>());
    let arguments: Vec<&str> = indices.map(|index| expressions[index.parse::<usize>().expect("a number")]).collect();
    *out += &format!("emulated::{}({})", name.replace(['.', ':'], "_"), arguments.join(", "));
    &operands[end..]
}

/// Loops without a body, which wait for memory, let others go on.
fn waits(text: &str) -> String {
    let mut out = String::new();
    for (k, part) in text.split("while (").enumerate() {
        let mut depth = 1;
        let end = part.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let body = end.filter(|_| k > 0).and_then(|end| Some((end, part[end + 1..].trim_start().strip_prefix("{}")?)));
        out += if k > 0 { "while (" } else { "" };
        match body {
            Some((end, rest)) => out.extend([&part[..=end], " { emulated::spin(); }", rest]),
            None => out += part,
        }
    }
    out
}
