//! The layer table: who may import whom inside `src/`.

use super::text::{self, File};

/// Lowest first. A module may import only modules of rows above its own row, never one of its own row.
const ROWS: &[&[&str]] = &[
    &["base"],
    &["kit"],
    &["config"],
    &["wire"],
    CORES,
    &["bridge"],
    &["node", "session"],
    &["netem"],
    &["simnet"],
    &["io"],
    &["ffi"],
];

/// State machines that know neither each other nor their owner.
const CORES: &[&str] =
    &["channel", "mesh", "rollback", "nat", "discovery", "replication", "coop", "determinism"];

/// Everything that breaks the table.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.under("src") && file.is_kind("rs")) {
        let Some(module) = module_of(&file.path) else { continue };
        if row(module).is_none() {
            problems.push(format!(
                "{}: module `{module}` is not in the layer table of tests/tidy/layers.rs",
                file.path
            ));
            continue;
        }
        for (target, name) in imports(&file.shipped_code(), depth_of(&file.path)) {
            if !may_import(module, &target) {
                let path = format!("crate::{target}::{name}");
                problems.push(format!(
                    "{}: `{module}` may not import `{path}`: {}",
                    file.path,
                    why(module, &target)
                ));
            }
        }
    }
    problems
}

fn why(module: &str, target: &str) -> &'static str {
    match (row(module), row(target)) {
        (_, None) => "that module is not in the layer table",
        (a, b) if a == b => "modules of one row do not know each other; the composer translates between them",
        _ => "a layer imports only layers below it",
    }
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

fn may_import(module: &str, target: &str) -> bool {
    module == target || row(target).is_some_and(|target| Some(target) < row(module))
}

/// `src/mesh/cut.rs` and `src/mesh.rs` are of `mesh`; `src/lib.rs` of none.
fn module_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("src/")?.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (name != "lib").then_some(name)
}

/// How many `super::` lead from a file's own level to the crate's root.
fn depth_of(path: &str) -> usize {
    let parts = path.matches('/').count();
    if path.ends_with("/mod.rs") { parts - 1 } else { parts }
}

/// (root module, name in it) of every path that starts at the crate's root; the name is empty where there is none.
fn imports(code: &str, depth: usize) -> Vec<(String, String)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let before_is_path = at > 0 && tokens[at - 1] == "::";
        if tokens[at] == "crate" && !before_is_path && tokens.get(at + 1).is_some_and(|t| t == "::") {
            tree(&tokens, at + 2, &mut Vec::new(), &mut found);
        }
        if tokens[at] == "super" && !before_is_path {
            let mut end = at;
            let mut levels = 0;
            while tokens.get(end).is_some_and(|t| t == "super")
                && tokens.get(end + 1).is_some_and(|t| t == "::")
            {
                levels += 1;
                end += 2;
            }
            if levels >= depth {
                tree(&tokens, end, &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one use tree (or plain path) and returns where it ends.
fn tree(
    tokens: &[String],
    mut at: usize,
    path: &mut Vec<String>,
    found: &mut Vec<(String, String)>,
) -> usize {
    let length = path.len();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|t| t != "}") {
                    at = tree(tokens, at, path, found);
                    if tokens.get(at).is_some_and(|t| t == ",") {
                        at += 1;
                    }
                }
                at += 1;
                break;
            }
            Some(word) if word == "*" || word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(word.to_owned());
                at += 1;
                if tokens.get(at).is_some_and(|t| t == "::") {
                    at += 1;
                    continue;
                }
                note(path, found);
                if tokens.get(at).is_some_and(|t| t == "as") {
                    at += 2;
                }
                break;
            }
            // A turbofish or the like: the path ended before it.
            _ => {
                note(path, found);
                at += 1;
                break;
            }
        }
    }
    path.truncate(length);
    at
}

fn note(path: &[String], found: &mut Vec<(String, String)>) {
    if let Some(first) = path.first() {
        found.push((first.clone(), path.get(1).cloned().unwrap_or_default()));
    }
}

fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            let mut word = String::from(c);
            while let Some(&c) = chars.peek().filter(|c| c.is_alphanumeric() || **c == '_') {
                word.push(c);
                chars.next();
            }
            tokens.push(word);
        } else if c == ':' && chars.peek() == Some(&':') {
            chars.next();
            tokens.push("::".into());
        } else if !c.is_whitespace() {
            tokens.push(c.into());
        }
    }
    tokens
}

#[test]
fn each_module_imports_only_what_lies_below_it() {
    let problems = check(&text::all_files());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_planted_breach_of_the_table_is_found() {
    for (path, code) in [
        ("src/base/time.rs", "use crate::kit::hash;"),
        ("src/channel/ack.rs", "use crate::mesh::Liveness;"),
        ("src/channel/mod.rs", "use crate::{base::Frame, rollback::{self as r}};"),
        ("src/mesh/cut.rs", "fn f() { let x = crate::node::Node::new(); }"),
        ("src/mesh/cut.rs", "use super::super::session::Session;"),
        ("src/mesh/mod.rs", "use super::io;"),
        ("src/mesh/cut.rs", "use crate::bridge::MeshPort;"),
        ("src/rollback/mod.rs", "fn f(x: &crate::bridge::Command) {}"),
        ("src/session/mod.rs", "use crate::node::Output;"),
        ("src/netem.rs", "use crate::simnet::Simnet;"),
        ("src/io/driver.rs", "use crate::ffi::Handle;"),
        ("src/unheard_of.rs", "fn f() {}"),
    ] {
        assert_eq!(check(&[File::planted(path, code)]).len(), 1, "{path}: {code}");
    }
}

#[test]
fn what_the_table_allows_is_not_blamed() {
    for (path, code) in [
        ("src/channel/ack.rs", "use crate::base::{Frame, Instant}; use crate::wire::{self, ParseError};"),
        ("src/mesh/cut.rs", "use super::liveness::Liveness; // crate::node::Node\n"),
        ("src/mesh/cut.rs", "#[cfg(test)]\nmod tests { use crate::netem::Netem; }"),
        ("src/node/mod.rs", "use crate::{channel, mesh::Liveness, bridge::NodePort};"),
        ("src/ffi/mesh.rs", "use crate::io::Driver; use super::super::simnet;"),
    ] {
        assert_eq!(check(&[File::planted(path, code)]), [""; 0], "{path}: {code}");
    }
}
