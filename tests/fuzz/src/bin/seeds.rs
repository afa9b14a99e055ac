//! Writes the golden vectors of one target as files, for libFuzzer: `seeds TARGET FOLDER`. Without a folder, prints the
//! length of the longest input that the target wants.

use retick_fuzz::{seeds, target};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(target) = words.first().and_then(|name| target(name)) else {
        eprintln!("usage: seeds TARGET [FOLDER]");
        return ExitCode::FAILURE;
    };
    let Some(folder) = words.get(1) else {
        println!("{}", target.max_len);
        return ExitCode::SUCCESS;
    };
    for (i, input) in seeds::of(target).iter().enumerate() {
        let file = Path::new(folder).join(format!("golden-{i:03}"));
        if let Err(error) = std::fs::write(&file, input) {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
