//! Rust text taken apart for the other checks: code without comments and strings, comments alone, code without tests.

use std::fs;
use std::path::{Path, PathBuf};

/// One text file of the project.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// As it is.
    pub(crate) text: String,
}

impl File {
    /// A file that exists only in a test.
    pub(crate) fn planted(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Code with comments and literals blanked; lines stay where they are.
    pub(crate) fn code(&self) -> String {
        blank(&self.text, false)
    }

    /// Comments with everything else blanked.
    pub(crate) fn comments(&self) -> String {
        blank(&self.text, true)
    }

    /// [`File::code`] without what only tests compile.
    pub(crate) fn shipped_code(&self) -> String {
        let code = self.code();
        if self.is_test() {
            return String::new();
        }
        let mut kept = String::new();
        let mut rest = code.as_str();
        while let Some(at) = rest.find("#[cfg(test)]") {
            kept.push_str(&rest[..at]);
            let end = at + item_length(&rest[at..]);
            kept.extend(rest[at..end].chars().filter(|&c| c == '\n'));
            rest = &rest[end..];
        }
        kept + rest
    }

    /// Whether the whole file is compiled for tests only.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs" || name.ends_with("_tests.rs") || self.path.contains("/tests/")
    }

    /// Whether its name ends so.
    pub(crate) fn is_kind(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Whether it lies in this folder.
    pub(crate) fn under(&self, folder: &str) -> bool {
        self.path.starts_with(folder) && self.path[folder.len()..].starts_with('/')
    }
}

/// From an attribute to the end of the item it belongs to: its `;`, or its closing brace.
fn item_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Blanks comments and literals, or everything but comments.
fn blank(text: &str, keep_comments: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let (length, is_comment, is_literal) = token(&chars, at);
        for &c in &chars[at..at + length] {
            let keep = if keep_comments { is_comment } else { !is_comment && !is_literal };
            out.push(if keep || c == '\n' { c } else { ' ' });
        }
        at += length;
    }
    out
}

/// Length of what begins here, whether it is a comment, and whether it is a string or character literal.
fn token(chars: &[char], at: usize) -> (usize, bool, bool) {
    let rest = &chars[at..];
    let next = rest.get(1).copied().unwrap_or(' ');
    match rest[0] {
        '/' if next == '/' => (until(rest, |i| rest[i] == '\n'), true, false),
        '/' if next == '*' => {
            let mut depth = 0;
            let mut i = 0;
            while i + 1 < rest.len() {
                match (rest[i], rest[i + 1]) {
                    ('/', '*') => depth += 1,
                    ('*', '/') => depth -= 1,
                    _ => {
                        i += 1;
                        continue;
                    }
                }
                i += 2;
                if depth == 0 {
                    return (i, true, false);
                }
            }
            (rest.len(), true, false)
        }
        '"' => (quoted(rest, '"'), false, true),
        'r' if !word_before(chars, at) => raw(rest).map_or((1, false, false), |length| (length, false, true)),
        '\'' if next == '\\' || rest.get(2) == Some(&'\'') => (quoted(rest, '\''), false, true),
        _ => (1, false, false),
    }
}

fn until(rest: &[char], stop: impl Fn(usize) -> bool) -> usize {
    (0..rest.len()).find(|&i| stop(i)).unwrap_or(rest.len())
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(rest.len())
}

fn raw(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let ends = |i: usize| {
        rest[i] == '"' && rest[i + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    let end = (hashes + 2..rest.len()).find(|&i| ends(i))?;
    Some(end + 1 + hashes)
}

fn word_before(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_') && chars[at - 1] != 'b'
}

/// Each word of code (identifiers), with the number of its line.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(number, line)| {
        line.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(move |w| (number + 1, w))
    })
}

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the project, if it exists.
pub(crate) fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Every text file of the project that is ours: no build output, no lock file, nothing of git's.
pub(crate) fn all_files() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(folder: &Path, files: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A folder, or in a linked work tree a file.
        if name == ".git" {
            continue;
        }
        if path.is_dir() {
            if name != "target" {
                walk(&path, files);
            }
        } else if name != "Cargo.lock" {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let relative = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            files.push(File { path: relative, text });
        }
    }
}

#[test]
fn comments_and_literals_are_no_code() {
    let file = File::planted(
        "src/x.rs",
        "let a = \"// no\"; // yes 'a\n/* b /* c */ d */ let c = '\"'; r#\"e\"#; fn f<'g>() {}\n",
    );
    let code = file.code();
    let found: Vec<&str> = words(&code).map(|(_, word)| word).collect();
    assert_eq!(found, ["let", "a", "let", "c", "fn", "f", "g"]);
    assert!(file.comments().contains("yes 'a") && file.comments().contains("c */ d"));
    assert!(!file.comments().contains("no"));
}

#[test]
fn what_only_tests_compile_is_not_shipped() {
    let file = File::planted(
        "src/x.rs",
        "fn a() {}\n#[cfg(test)]\nuse b::c;\n#[cfg(test)]\nmod tests { fn d() { } }\nfn e() {}\n",
    );
    let code = file.shipped_code();
    assert!(code.contains("fn a") && code.contains("fn e"));
    assert!(!code.contains("b::c") && !code.contains("fn d"));
    assert_eq!(code.lines().position(|line| line.contains("fn e")), Some(5));
}

#[test]
fn the_checks_see_the_whole_project() {
    let files = all_files();
    for path in
        ["Cargo.toml", "src/lib.rs", "src/ffi/mod.rs", "tools/xtask/src/main.rs", ".ci/run", "README.md"]
    {
        assert!(files.iter().any(|file| file.path == path), "{path}");
    }
    assert!(files.iter().all(|file| !file.path.starts_with("target/") && !file.path.starts_with(".git/")));
}
