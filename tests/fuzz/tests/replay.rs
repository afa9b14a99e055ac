//! Every committed input and every golden vector through its target, and a few seeded mutations of them.
//!
//! What fuzzing once found stays in `corpus` as `found-…`, so that it is found again should it come back.

use retick::base::Rng;
use retick_fuzz::{TARGETS, Target, blind, seeds};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// All corpora together; a clone carries them for ever.
const CORPORA_MOST: u64 = 500_000;

#[test]
fn no_known_input_breaks_a_target() {
    // One after the other, so that what a failure prints is about one input.
    for target in TARGETS {
        let mut known = seeds::of(target);
        known.iter().for_each(|input| run(target, "a golden vector", input));
        for file in files(target) {
            let input = fs::read(&file).expect("a file of the corpus");
            run(target, &file.display().to_string(), &input);
            known.push(input);
        }
        let mut rng = Rng::new(1);
        for i in 0..target.mutations {
            run(target, &format!("mutation {i}"), &blind::mutate(&known, target.max_len, &mut rng));
        }
        println!("{}: {} inputs", target.name, known.len());
    }
}

#[test]
fn the_corpora_are_small_and_belong_to_targets() {
    let mut bytes = 0;
    for target in TARGETS {
        let files = files(target);
        assert!(
            !files.is_empty(),
            "corpus/{} is empty: cargo xtask fuzz --target {0} --minimise",
            target.name
        );
        bytes += files.iter().map(|file| file.metadata().expect("a file").len()).sum::<u64>();
    }
    assert!(bytes <= CORPORA_MOST, "{bytes} bytes");
    let names = TARGETS.iter().map(|target| target.name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), TARGETS.len(), "two targets have one name");
    assert_eq!(names_in("corpus"), names);
    let sources = names.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in("fuzz_targets"), sources);
}

fn run(target: &Target, what: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        eprintln!("the target `{}` broke on {what}: {input:?}", target.name);
        resume_unwind(panic);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(target: &Target) -> Vec<PathBuf> {
    let folder = root().join("corpus").join(target.name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}
