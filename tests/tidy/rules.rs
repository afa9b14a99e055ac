//! Rules for single files: how long, how they begin, which words stay where, which phrases stay out.

use super::text::{self, File, words};

const LINES_MOST: usize = 800;
const LINES_WISHED: usize = 500;

/// Folders with Rust code of ours.
const RUST_FOLDERS: &[&str] = &["src", "tools", "bindings", "tests", "benches", "samples"];

/// A word or path of shipped code, and where in `src/` it may stand.
struct Fence {
    what: &'static [&'static str],
    places: &'static [&'static str],
    why: &'static str,
}

const FENCES: &[Fence] = &[
    Fence {
        what: &["unsafe"],
        // Who waits for a socket promises that it stays open.
        places: &["src/ffi", "src/io/poll"],
        why: "the C edge is the only place with unsafe code",
    },
    Fence {
        what: &["Instant::now", "SystemTime"],
        places: &["src/io"],
        why: "time is handed in; only the driver reads a clock",
    },
    Fence {
        what: &["thread::spawn", "thread::sleep", "thread::park", "thread::Builder", "thread::scope"],
        places: &["src/io"],
        why: "one IO thread serves every mesh, and only the driver starts it",
    },
    Fence {
        what: &["UdpSocket", "TcpStream", "TcpListener", "socket2", "polling", "getrandom"],
        places: &["src/io"],
        why: "sockets and the system's randomness live in the driver",
    },
    Fence {
        what: &["HashMap", "HashSet", "RandomState"],
        places: &[],
        why: "its order differs between runs: use BTreeMap or an array",
    },
    Fence {
        what: &[
            "println!",
            "eprintln!",
            "print!",
            "eprint!",
            "process::exit",
            "process::abort",
            "std::env",
            "std::fs",
        ],
        places: &["src/io"],
        why: "the library prints nothing, ends no process and reads no environment",
    },
    Fence {
        what: &["todo!", "unimplemented!", "dbg!"],
        places: &[],
        why: "unfinished code is not committed",
    },
];

/// Phrases that stay out of every file; written in two halves so that this file does not hold them.
const PHRASES: &[(&str, &str, &str)] = &[
    ("/wo", "rk/", "a path of one machine"),
    ("/ho", "me/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("index.cra", "tes.io", "a registry's host: clients know it"),
    ("static.cra", "tes.io", "a registry's host: clients know it"),
    ("registry.np", "mjs.org", "a registry's host: clients know it"),
    ("pypi", ".org", "a registry's host: clients know it"),
    ("pythonhos", "ted.org", "a registry's host: clients know it"),
    ("deb.deb", "ian.org", "a registry's host: clients know it"),
];

fn is_rust(file: &File) -> bool {
    file.is_kind("rs") && RUST_FOLDERS.iter().any(|folder| file.under(folder))
}

fn check_sizes(files: &[File]) -> Vec<String> {
    let lines = |file: &File| file.text.lines().count();
    let long = files.iter().filter(|file| is_rust(file) && lines(file) > LINES_MOST);
    long.map(|file| format!("{}: {} lines; {LINES_MOST} at most", file.path, lines(file))).collect()
}

fn check_headers(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| is_rust(file)) {
        let header: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        if header.is_empty() {
            problems.push(format!("{}: begins without a `//!` role header", file.path));
        } else if file.under("src") && file.path != "src/lib.rs" && !file.is_test() {
            let says = header.join("\n");
            if header.len() < 3 || !says.contains("Never") {
                problems.push(format!(
                    "{}: its header says in 3 to 6 lines what it decides, `Fed by`, `Yields` and `Never`",
                    file.path
                ));
            }
        }
    }
    problems
}

fn check_fences(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.under("src") && file.is_kind("rs")) {
        let code = file.shipped_code();
        for fence in FENCES {
            if fence.places.iter().any(|place| file.under(place)) {
                continue;
            }
            for what in fence.what {
                if let Some(line) = line_of(&code, what) {
                    problems.push(format!("{}:{line}: `{what}`: {}", file.path, fence.why));
                }
            }
        }
    }
    problems
}

/// The line of a word, a path like `a::b`, or a macro like `a!`.
fn line_of(code: &str, what: &str) -> Option<usize> {
    if what.contains("::") {
        return code.lines().position(|line| line.contains(what)).map(|at| at + 1);
    }
    let name = what.trim_end_matches('!');
    let called = |number: usize| code.lines().nth(number - 1).is_some_and(|line| line.contains(what));
    words(code).find(|&(number, word)| word == name && called(number)).map(|(number, _)| number)
}

fn check_unfinished(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| is_rust(file)) {
        let comments = file.comments();
        for (number, word) in words(&comments) {
            if [concat!("TO", "DO"), concat!("FIX", "ME"), "XXX"].contains(&word) {
                problems.push(format!("{}:{number}: `{word}`: say it in an issue, or do it", file.path));
            }
        }
    }
    problems
}

fn check_phrases(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        for (head, tail, why) in PHRASES {
            let phrase = format!("{head}{tail}");
            if let Some(at) = file.text.lines().position(|line| line.contains(&phrase)) {
                problems.push(format!("{}:{}: `{phrase}`: {why}", file.path, at + 1));
            }
        }
    }
    problems
}

fn expect_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn no_file_is_longer_than_800_lines() {
    let files = text::all_files();
    for file in files.iter().filter(|file| is_rust(file) && file.text.lines().count() > LINES_WISHED) {
        let path = &file.path;
        // Shown by `cargo test -- --nocapture`; wished, not demanded.
        eprint_line(&format!("{path}: {} lines; {LINES_WISHED} wished", file.text.lines().count()));
    }
    expect_none(&check_sizes(&files));
}

#[test]
fn every_file_begins_with_its_role() {
    expect_none(&check_headers(&text::all_files()));
}

#[test]
fn clocks_threads_sockets_and_unsafe_code_stay_where_they_belong() {
    expect_none(&check_fences(&text::all_files()));
}

#[test]
fn nothing_unfinished_is_left_in_comments() {
    expect_none(&check_unfinished(&text::all_files()));
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    expect_none(&check_phrases(&text::all_files()));
}

#[test]
fn a_planted_long_file_is_found() {
    assert_eq!(check_sizes(&[File::planted("src/a.rs", &"x\n".repeat(801))]).len(), 1);
    assert_eq!(check_sizes(&[File::planted("src/a.rs", &"x\n".repeat(800))]).len(), 0);
}

#[test]
fn a_planted_missing_header_is_found() {
    let whole = "//! Decides it.\n//!\n//! Fed by: a. Yields: b.\n//! Never: c.\n";
    for (path, text, count) in [
        ("src/a.rs", whole, 0),
        ("src/a.rs", "//! Decides it.\n", 1),
        ("src/a.rs", "//! a\n//! b\n//! c\n", 1),
        ("src/a.rs", "use b;\n", 1),
        ("tests/a.rs", "use b;\n", 1),
        ("tests/a.rs", "//! What it tests.\n", 0),
        ("src/a/tests.rs", "//! What it tests.\n", 0),
    ] {
        assert_eq!(check_headers(&[File::planted(path, text)]).len(), count, "{path}: {text}");
    }
}

#[test]
fn a_planted_breach_of_a_fence_is_found() {
    for (path, code) in [
        ("src/mesh/a.rs", "fn f() { let t = Instant::now(); }"),
        ("src/session/a.rs", "use std::time::SystemTime;"),
        ("src/node/a.rs", "use std::collections::HashMap;"),
        ("src/io/a.rs", "use std::collections::HashSet;"),
        ("src/io/a.rs", "fn f() { unsafe { g() } }"),
        ("src/netem.rs", "fn f() { thread::sleep(d); }"),
        ("src/wire/a.rs", "fn f(s: &UdpSocket) {}"),
        ("src/ffi/a.rs", "fn f() { println!(); }"),
        ("src/ffi/a.rs", "fn f() { todo!() }"),
        ("src/ffi/a.rs", "fn f() { std::process::abort() }"),
    ] {
        assert_eq!(check_fences(&[File::planted(path, code)]).len(), 1, "{path}: {code}");
    }
    for (path, code) in [
        ("src/io/a.rs", "use std::net::UdpSocket; fn f() { std::thread::spawn(g); Instant::now(); }"),
        ("src/ffi/a.rs", "unsafe extern \"C\" fn f() {}"),
        (
            "src/mesh/a.rs",
            "#![deny(unsafe_code)] // unsafe HashMap todo!\nfn print(t: &str) { t.contains(\"todo!\"); }",
        ),
        ("src/mesh/a.rs", "#[cfg(test)]\nmod tests { fn f() { std::thread::spawn(g); } }"),
    ] {
        expect_none(&check_fences(&[File::planted(path, code)]));
    }
}

#[test]
fn planted_unfinished_work_is_found() {
    let comment = format!("// {}: later\nlet s = \"{}\";\n", concat!("TO", "DO"), concat!("TO", "DO"));
    assert_eq!(check_unfinished(&[File::planted("src/a.rs", &comment)]).len(), 1);
}

#[test]
fn a_planted_phrase_is_found() {
    for (head, tail, _) in PHRASES {
        assert_eq!(check_phrases(&[File::planted("README.md", &format!("see {head}{tail} there"))]).len(), 1);
    }
}

#[expect(clippy::print_stderr, reason = "a wish is shown, not asserted")]
fn eprint_line(line: &str) {
    eprintln!("{line}");
}
