//! Makes the generated files, `include/retick.h` and `include/retick.abi`, or checks that they are up to date.
//!
//! Fed by: the sources of `src/ffi` (their order is the header's) and `cbindgen.toml`. Yields: the two files (`--bless`),
//! or the first difference (`--check`). Never: writes anything else, or needs the crate to compile.

mod abi;
mod header;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The groups of the header in order of use: title and source files.
const GROUPS: &[(&str, &[&str])] = &[
    ("library: versions, errors, log, allocator, shutdown", &["library.rs"]),
    ("handles", &["handles.rs"]),
    ("events: what meshes and sessions tell", &["event_types.rs"]),
    ("mesh: who is there, on which path, who coordinates", &["mesh_types.rs", "mesh.rs"]),
    ("session: the game's timeline", &["session_types.rs", "session.rs"]),
    ("simulated network: whole matches in virtual time, in one process", &["simnet.rs"]),
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--check"] => generate(&root).and_then(|files| check(&files)),
        ["--bless"] => generate(&root).and_then(|files| bless(&files)),
        _ => Err("usage: retick-gen --check | --bless".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            report(&problem);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command line tool")]
fn report(problem: &str) {
    eprintln!("retick-gen: {problem}");
}

fn generate(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let files = GROUPS.iter().flat_map(|(_, files)| *files);
    let sources =
        files.map(|file| source::read(&root.join("src/ffi").join(file))).collect::<Result<Vec<_>, _>>()?;
    let items = header::declarations(&root.join("cbindgen.toml"), &sources)?;
    let structs = abi::structs(&items)?;
    let mut sources = sources.iter();
    let groups: Vec<_> = GROUPS
        .iter()
        .map(|(title, files)| (*title, sources.by_ref().take(files.len()).collect::<Vec<_>>()))
        .collect();
    Ok(vec![
        (root.join("include/retick.h"), header::render(&groups, &items, &structs)?),
        (root.join("include/retick.abi"), abi::render(&groups, &items, &structs)?),
    ])
}

fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    for (path, wanted) in files {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        if let Some((number, _)) = wanted
            .lines()
            .zip(found.lines().chain(std::iter::repeat("")))
            .enumerate()
            .find(|(_, (a, b))| a != b)
        {
            return Err(format!(
                "{} differs from its sources in line {}; run `cargo run -p retick-gen -- --bless`",
                path.display(),
                number + 1
            ));
        }
        if found != *wanted {
            return Err(format!("{} has lines too many; bless it", path.display()));
        }
    }
    Ok(())
}

fn bless(files: &[(PathBuf, String)]) -> Result<(), String> {
    for (path, wanted) in files {
        std::fs::write(path, wanted).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, generate};
    use std::path::Path;

    #[test]
    fn the_committed_files_are_what_the_sources_give_and_a_changed_one_is_noticed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = generate(&root).expect("the sources can be read");
        assert_eq!(check(&files), Ok(()));
        files[0].1 = files[0].1.replacen("RETICK_ERR_BUSY (-3)", "RETICK_ERR_BUSY (-4)", 1);
        let problem = check(&files).expect_err("one number is another");
        assert!(problem.contains("retick.h differs from its sources in line "), "{problem}");
    }
}
