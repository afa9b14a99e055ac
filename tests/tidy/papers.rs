//! The Markdown files: what they quote is what the project has, and the overview stays one.

use super::text;

const OVERVIEW_LINES: usize = 150;
const SAMPLE: &str = "samples/c/minimal/minimal.c";

/// The C block after the marker that names the file.
fn quoted(markdown: &str, file: &str) -> Option<String> {
    let after = markdown.split(&format!("<!-- from {file} -->")).nth(1)?;
    Some(after.split("```c\n").nth(1)?.split("```").next()?.to_owned())
}

/// What lies between `[readme]` and `[/readme]` in the file, each alone in a comment line; all of it without them.
fn region(source: &str) -> String {
    let mut lines = Vec::new();
    let mut inside = !source.contains("[readme]");
    for line in source.lines() {
        match (line.contains("[readme]"), line.contains("[/readme]")) {
            (true, _) => inside = true,
            (_, true) => inside = false,
            _ if inside => lines.push(line),
            _ => {}
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_overview_is_short() {
    let lines = text::read("ARCHITECTURE.md").map_or(usize::MAX, |text| text.lines().count());
    assert!(lines <= OVERVIEW_LINES, "ARCHITECTURE.md has {lines} lines; {OVERVIEW_LINES} at most");
}

#[test]
fn the_readme_quotes_the_program_that_is_compiled() {
    let readme = text::read("README.md").unwrap_or_default();
    let Some(source) = text::read(SAMPLE) else {
        assert_eq!(quoted(&readme, SAMPLE), None, "README.md quotes {SAMPLE}, which does not exist");
        return;
    };
    let expected = region(&source);
    assert_eq!(quoted(&readme, SAMPLE), Some(expected), "README.md must quote {SAMPLE} word for word");
}

#[test]
fn the_smallest_program_is_below_60_lines() {
    let lines = text::read(SAMPLE).map_or(0, |source| region(&source).lines().count());
    assert!(lines < 60, "{SAMPLE}: {lines} lines between its [readme] marks; fewer than 60 is the promise");
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
    let source = "int a;\n/* [readme] */\nint b;\n/* [/readme] */\nint c;\n";
    let readme = |code: &str| format!("x\n<!-- from f.c -->\n```c\n{code}```\n");
    assert_eq!(quoted(&readme("int b;\n"), "f.c"), Some(region(source)));
    assert_ne!(quoted(&readme("int a;\n"), "f.c"), Some(region(source)));
    assert_eq!(quoted("nothing", "f.c"), None);
    assert_eq!(region("int a;\n"), "int a;\n");
}
