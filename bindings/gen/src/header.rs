//! The header: cbindgen's declarations, laid out in groups, with its frame.
//!
//! Fed by: the sources and their order. Yields: the text of `include/retick.h`.
//! Never: changes a declaration's meaning; it adds `RETICK_API`, literal suffixes and array bounds of room parameters.

use crate::abi::Struct;
use crate::source::{Kind, Source};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = include_str!("head.h");
const TAIL: &str = include_str!("tail.h");
/// Longest line of a prototype.
const LINE: usize = 120;

/// One declaration: its comment (may be empty) and its text without it.
#[derive(Debug)]
pub(crate) struct Item {
    /// `/** … */`, lines ended.
    pub(crate) comment: String,
    /// The declaration, lines ended.
    pub(crate) text: String,
}

/// What cbindgen makes of the sources, by name.
pub(crate) fn declarations(config: &Path, sources: &[Source]) -> Result<BTreeMap<String, Item>, String> {
    let config = cbindgen::Config::from_file(config)?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(&source.path);
    }
    let mut bytes = Vec::new();
    builder.generate().map_err(|error| error.to_string())?.write(&mut bytes);
    split(&String::from_utf8(bytes).map_err(|error| error.to_string())?)
}

fn split(text: &str) -> Result<BTreeMap<String, Item>, String> {
    let mut items = BTreeMap::new();
    let (mut comment, mut declaration, mut in_comment) = (String::new(), String::new(), false);
    let mut depth = 0i32;
    for line in text.lines().map(str::trim_end) {
        let starts_item = declaration.is_empty();
        if starts_item && line.is_empty() {
            continue;
        }
        if starts_item && (in_comment || line.starts_with("/**")) {
            in_comment = !line.ends_with("*/");
            comment.push_str(line);
            comment.push('\n');
            continue;
        }
        declaration.push_str(line);
        declaration.push('\n');
        let code = line.trim_start();
        if !code.starts_with('*') && !code.starts_with("/*") {
            depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        }
        if depth == 0 && (line.ends_with(';') || line.starts_with("#define")) {
            let name = name_of(&declaration).ok_or_else(|| format!("no name in {declaration}"))?;
            items.insert(
                name,
                Item { comment: std::mem::take(&mut comment), text: std::mem::take(&mut declaration) },
            );
        }
    }
    Ok(items)
}

fn name_of(declaration: &str) -> Option<String> {
    let first = declaration.lines().next()?;
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    if let Some(rest) = first.strip_prefix("#define ") {
        return Some(word(rest));
    }
    if let Some(rest) = first.strip_prefix("typedef struct ") {
        return Some(word(rest));
    }
    if first.starts_with("typedef ") {
        if let Some((_, rest)) = first.split_once("(*") {
            return Some(word(rest));
        }
        return first.trim_end_matches(';').split_whitespace().last().map(str::to_owned);
    }
    let before = declaration.split('(').next()?;
    before.rsplit([' ', '*', '\n']).next().map(str::to_owned)
}

/// The whole header.
pub(crate) fn render(
    groups: &[(&str, Vec<&Source>)],
    items: &BTreeMap<String, Item>,
    structs: &[Struct],
) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    for (title, sources) in groups {
        let _ =
            write!(out, "\n/* ---- {title} {}*/\n", "-".repeat(100usize.saturating_sub(title.len())) + " ");
        for (name, kind) in sources.iter().flat_map(|source| &source.items) {
            let item = items.get(name).ok_or_else(|| format!("cbindgen dropped {name}"))?;
            // Constants that stand together in the source stand together here.
            if !matches!(kind, Kind::Const(_, false)) {
                out.push('\n');
            }
            let is_const = matches!(kind, Kind::Const(..));
            out.push_str(&one_line(&item.comment, is_const));
            out.push_str(&declaration(name, kind, &item.text)?);
        }
    }
    out.push('\n');
    let asserts: Vec<String> = structs
        .iter()
        .map(|s| {
            let pointers = match s.pointers() {
                0 => String::new(),
                many => format!(" + {many} * sizeof(void *)"),
            };
            format!("RETICK_ASSERT_LAYOUT(sizeof({}) == {}{pointers});", s.name, s.size() - 8 * s.pointers())
        })
        .collect();
    out.push_str(&TAIL.replace("@ASSERTS@", &asserts.join("\n")));
    match out.lines().find(|line| !line.is_ascii()) {
        Some(line) => Err(format!("the header must be plain ASCII, and this is not: {line}")),
        None => Ok(out),
    }
}

/// A comment of one line is written on one line.
fn one_line(comment: &str, is_const: bool) -> String {
    let lines: Vec<&str> = comment.lines().collect();
    match lines.as_slice() {
        ["/**", line, " */"] if is_const => format!("/** {} */\n", line.trim_start_matches(" *").trim()),
        _ => comment.to_owned(),
    }
}

fn declaration(name: &str, kind: &Kind, text: &str) -> Result<String, String> {
    match kind {
        Kind::Const(rust, _) => {
            let value = text
                .trim_end()
                .strip_prefix("#define ")
                .and_then(|rest| rest.strip_prefix(name))
                .map(str::trim)
                .ok_or_else(|| format!("{name} is no constant: {text}"))?;
            match rust.as_str() {
                "u32" if value == "4294967295" => Ok(format!("#define {name} 0xFFFFFFFFu\n")),
                "u32" => Ok(format!("#define {name} {value}u\n")),
                "i32" if value.starts_with('-') => Ok(format!("#define {name} ({value})\n")),
                "i32" => Ok(format!("#define {name} {value}\n")),
                other => Err(format!("{name}: constants are u32 or i32, not {other}")),
            }
        }
        Kind::Type => Ok(compact_fields(text)
            .replace("    struct retick_", "    retick_")
            .replace("(void *user, struct retick_", "(void *user, retick_")),
        Kind::Function => Ok(prototype(text)),
    }
}

/// Field comments of one line stay on one line.
fn compact_fields(text: &str) -> String {
    let mut out = String::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim() == "/**" && lines.get(at + 2).is_some_and(|l| l.trim() == "*/") {
            let content = lines[at + 1].trim().trim_start_matches('*').trim();
            let _ = writeln!(out, "    /** {content} */");
            at += 3;
        } else {
            out.push_str(lines[at]);
            out.push('\n');
            at += 1;
        }
    }
    out
}

/// A prototype on one line, or one argument a line group when that is too long.
fn prototype(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("struct retick_", "retick_");
    let flat = flat
        .replace("uint8_t *room", "uint8_t room[32]")
        .replace("uint8_t *out_room", "uint8_t out_room[32]");
    let flat = format!("RETICK_API {flat}");
    let Some((before, arguments)) = flat.split_once('(').filter(|_| flat.len() > LINE) else {
        return flat + "\n";
    };
    let mut out = format!("{before}(\n");
    let mut line = String::from("   ");
    for argument in arguments.split_inclusive(',').map(str::trim) {
        if line.len() + 1 + argument.len() > LINE {
            out.push_str(&line);
            out.push('\n');
            "   ".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(argument);
    }
    out + &line + "\n"
}
