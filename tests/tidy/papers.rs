//! The Markdown files: what they quote is what the project has, and the overview stays one.

use super::text;

const OVERVIEW_LINES: usize = 150;
const SAMPLE: &str = "samples/c/minimal/minimal.c";

/// The C block after the marker that names the file.
fn quoted(markdown: &str, file: &str) -> Option<String> {
    let after = markdown.split(&format!("<!-- from {file} -->")).nth(1)?;
    Some(after.split("```c\n").nth(1)?.split("```").next()?.to_owned())
}

const BEGIN: &str = "/* ---- netcode";
const END: &str = "/* ---- end of netcode";

/// What lies between the two marks of the file.
fn region(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.starts_with(BEGIN)).skip(1);
    lines.take_while(|line| !line.starts_with(END)).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_overview_is_short() {
    let lines = text::read("ARCHITECTURE.md").map_or(usize::MAX, |text| text.lines().count());
    assert!(lines <= OVERVIEW_LINES, "ARCHITECTURE.md has {lines} lines; {OVERVIEW_LINES} at most");
}

#[test]
fn the_readme_quotes_the_program_that_is_compiled() {
    let readme = text::read("README.md").unwrap_or_default();
    let expected = region(&text::read(SAMPLE).unwrap_or_default());
    assert_eq!(quoted(&readme, SAMPLE), Some(expected), "README.md must quote {SAMPLE} word for word");
}

#[test]
fn the_smallest_program_is_below_60_lines() {
    let source = text::read(SAMPLE).unwrap_or_default();
    let lines = region(&source).lines().count();
    assert!((10..60).contains(&lines), "{SAMPLE}: {lines} lines of netcode; fewer than 60 is the promise");
}

#[test]
fn every_link_of_the_papers_leads_to_a_file() {
    let missing: Vec<String> = text::all_files()
        .iter()
        .filter(|file| file.is_kind("md"))
        .flat_map(|file| broken_links(&file.path, &file.text))
        .collect();
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn every_test_that_a_security_promise_names_exists() {
    let paper = text::read("SECURITY.md").unwrap_or_default();
    let sources: String =
        text::all_files().iter().filter(|file| file.is_kind("rs")).map(|file| &*file.text).collect();
    assert!(promised_tests(&paper).len() > 20, "the table of promises is there");
    assert_eq!(
        without_test(&paper, &sources),
        Vec::<&str>::new(),
        "SECURITY.md names tests that do not exist"
    );
}

#[test]
fn a_planted_promise_without_a_test_is_found() {
    let paper = "| who | he | what |\n|--|--|--|\n| a | b | `kept` `broken` |\ntext `other`\n";
    assert_eq!(without_test(paper, "#[test]\nfn kept() {}\nfn broken() {}\n"), ["broken"]);
}

/// The names in backquotes in the last column of a table.
fn promised_tests(paper: &str) -> Vec<&str> {
    let rows = paper.lines().filter(|line| line.starts_with("| "));
    let tests = rows.filter_map(|row| row.trim_end_matches(" |").rsplit("| ").next());
    tests.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

fn without_test<'a>(paper: &'a str, sources: &str) -> Vec<&'a str> {
    // In a file of tests, or in a module of them.
    let forms = |name: &str| [format!("#[test]\nfn {name}()"), format!("#[test]\n    fn {name}()")];
    let exists = |name: &str| forms(name).iter().any(|form| sources.contains(form));
    promised_tests(paper).into_iter().filter(|name| !exists(name)).collect()
}

fn broken_links(path: &str, markdown: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let targets = markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .filter(|target| !text::root().join(folder).join(target).exists())
        .map(|target| format!("{path}: `{target}` does not exist"))
        .collect()
}

#[test]
fn a_planted_broken_link_is_found() {
    assert_eq!(
        broken_links("README.md", "[a](Cargo.toml) [b](nowhere.md#x) [c](https://x.org) [d](#y)").len(),
        1
    );
    assert_eq!(broken_links("tests/a.md", "[a](../Cargo.toml)").len(), 0);
}

#[test]
fn a_planted_difference_between_readme_and_program_is_found() {
    let source = "int a;\n/* ---- netcode --- */\nint b;\n/* ---- end of netcode --- */\nint c;\n";
    let readme = |code: &str| format!("x\n<!-- from f.c -->\n```c\n{code}```\n");
    assert_eq!(quoted(&readme("int b;\n"), "f.c"), Some(region(source)));
    assert_ne!(quoted(&readme("int a;\n"), "f.c"), Some(region(source)));
    assert_eq!(quoted("nothing", "f.c"), None);
    assert_eq!(region("int a;\n"), "");
}
