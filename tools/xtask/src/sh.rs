//! Runs commands: shows them, and says in one line what went wrong.
//!
//! Fed by: the other modules. Yields: exit as `Ok`, or a sentence. Never: hides a command it ran.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `Err` is a sentence for the user; empty when everything was said already.
pub(crate) type Outcome = Result<(), String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds: this program lies in `<target>/<profile>/`.
pub(crate) fn target_dir() -> PathBuf {
    let by_program = env::current_exe().ok().and_then(|path| path.ancestors().nth(2).map(Path::to_path_buf));
    by_program.unwrap_or_else(|| root().join("target"))
}

/// A command in the root of the workspace.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo, without the variables that our own cargo set for us: build scripts that look at them would run again.
pub(crate) fn cargo(words: &str) -> Command {
    let mut command = command(&env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO" {
            command.env_remove(name);
        }
    }
    command.args(words.split_whitespace());
    command
}

/// The command as one would type it, with the variables we set.
pub(crate) fn text(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    words.push(program.to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

/// Shows and runs it; its output goes to ours.
pub(crate) fn run(command: &mut Command) -> Outcome {
    println!("$ {}", text(command));
    let status = command.stdin(Stdio::null()).status().map_err(|error| not_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", text(command))) }
}

/// Runs it and takes what it prints; nothing is shown unless it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_run(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "`{}` failed ({}): {}",
        text(command),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

/// Whether a program of that name is in `PATH`.
pub(crate) fn has(program: &str) -> bool {
    let Some(path) = env::var_os("PATH") else { return false };
    env::split_paths(&path)
        .any(|folder| folder.join(format!("{program}{}", env::consts::EXE_SUFFIX)).is_file())
}

fn not_run(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` could not be run: {error}", text(command))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{word}'") }
}
