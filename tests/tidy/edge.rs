//! The C edge: every export says who may call it, and code, header and ABI file name the same exports.

use super::text::{self, File};
use std::collections::BTreeSet;

/// One exported function.
struct Export {
    path: String,
    line: usize,
    name: String,
    docs: String,
}

/// Every exported function of `src/ffi`.
fn exports(files: &[File]) -> Vec<Export> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.under("src/ffi") && file.is_kind("rs") && !file.is_test()) {
        let code = file.shipped_code();
        let lines: Vec<&str> = file.text.lines().collect();
        let code: Vec<&str> = code.lines().collect();
        for at in (0..code.len()).filter(|&at| code[at].contains("no_mangle")) {
            let Some(end) = (at..code.len().min(at + 12)).find(|&line| words_after_fn(code[line]).is_some())
            else {
                continue;
            };
            let name = words_after_fn(code[end]).unwrap_or_default().to_owned();
            let is_above =
                |line: &str| line.starts_with("///") || line.starts_with("#[") || line.starts_with("//");
            let docs: Vec<&str> =
                (0..at).rev().map(|l| lines[l].trim()).take_while(|line| is_above(line)).collect();
            found.push(Export { path: file.path.clone(), line: end + 1, name, docs: docs.join("\n") });
        }
    }
    found
}

fn words_after_fn(line: &str) -> Option<&str> {
    let after = line.split("fn ").nth(1)?;
    after.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| name.starts_with("retick_"))
}

fn check_threads(files: &[File]) -> Vec<String> {
    let silent = exports(files).into_iter().filter(|export| !export.docs.contains("Thread:"));
    silent.map(|e| format!("{}:{}: `{}` has no `Thread:` line in its docs", e.path, e.line, e.name)).collect()
}

/// Functions that a C header declares: `retick_…(` outside comments and macros.
fn declared(header: &str) -> BTreeSet<String> {
    let plain = File::planted("x.h", header).code();
    let code: Vec<&str> = plain.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let code = code.join("\n");
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices('(') {
        let head = code[..at].trim_end();
        let name = &head[head.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1)..];
        if name.starts_with("retick_") {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Functions that the ABI file lists: `export retick_…`, one a line.
fn listed(abi: &str) -> BTreeSet<String> {
    let lines = abi.lines().filter_map(|line| line.trim().strip_prefix("export "));
    lines.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// Compares the three lists; without exports there is nothing to compare yet.
fn check_lists(files: &[File], header: Option<&str>, abi: Option<&str>) -> Vec<String> {
    let code: BTreeSet<String> = exports(files).into_iter().map(|export| export.name).collect();
    if code.is_empty() && header.is_none() && abi.is_none() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (path, text, read) in [
        ("include/retick.h", header, declared as fn(&str) -> BTreeSet<String>),
        ("include/retick.abi", abi, listed),
    ] {
        let Some(text) = text else {
            problems.push(format!("{path} does not exist, but src/ffi has {} exports", code.len()));
            continue;
        };
        let names = read(text);
        problems.extend(
            code.difference(&names).map(|name| format!("{path} lacks `{name}`, which src/ffi exports")),
        );
        problems.extend(
            names.difference(&code).map(|name| format!("{path} has `{name}`, which src/ffi does not export")),
        );
    }
    problems
}

#[test]
fn every_export_says_which_thread_may_call_it() {
    let problems = check_threads(&text::all_files());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn code_header_and_abi_file_have_the_same_exports() {
    let (header, abi) = (text::read("include/retick.h"), text::read("include/retick.abi"));
    let problems = check_lists(&text::all_files(), header.as_deref(), abi.as_deref());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

const GOOD: &str =
    "/// Does it.\n///\n/// Thread: any.\n#[unsafe(no_mangle)]\npub extern \"C\" fn retick_a(x: u32) {}\n";
const SILENT: &str = "/// Thread: any.\nfn other() {}\n/// Does it.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn retick_b() {}\n";

#[test]
fn a_planted_export_without_a_thread_line_is_found() {
    assert_eq!(check_threads(&[File::planted("src/ffi/a.rs", GOOD)]), [""; 0]);
    assert_eq!(check_threads(&[File::planted("src/ffi/a.rs", SILENT)]).len(), 1);
}

#[test]
fn a_planted_difference_between_code_header_and_abi_file_is_found() {
    let code = [File::planted("src/ffi/a.rs", GOOD), File::planted("src/ffi/b.rs", SILENT)];
    let header = "/* retick_c(); */\n#define retick_d(x) x\ntypedef void (*retick_fn)(int);\nRETICK_API int retick_a(int x);\nvoid retick_b\n  (void);\n";
    let abi = "struct retick_x 8\nexport retick_a\nexport retick_b\n";
    assert_eq!(check_lists(&code, Some(header), Some(abi)), [""; 0]);
    assert_eq!(check_lists(&code, None, Some(abi)).len(), 1);
    assert_eq!(check_lists(&code, Some(header), Some("export retick_a\n")).len(), 1);
    assert_eq!(check_lists(&code[..1], Some(header), Some(abi)).len(), 2);
    assert_eq!(check_lists(&code, Some("int retick_a(int x);"), Some(abi)).len(), 1);
    assert_eq!(check_lists(&[], None, None), [""; 0]);
}
