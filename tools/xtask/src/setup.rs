//! Decides which system packages are missing, and installs them where that needs no question.
//!
//! Fed by: what is in `PATH`. Yields: everything is there, or the exact command to type. Never: asks, or uses sudo.

use crate::sh::{self, Outcome};

/// A program we need, and the package that brings it, per package manager: apt, dnf, pacman, apk, brew.
pub(crate) struct Tool {
    program: &'static str,
    packages: [&'static str; 5],
}

const MANAGERS: [(&str, &str); 5] = [
    ("apt-get", "apt-get install -y --no-install-recommends"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S --noconfirm"),
    ("apk", "apk add"),
    ("brew", "brew install"),
];

const CC: Tool =
    Tool { program: "cc", packages: ["gcc libc6-dev", "gcc glibc-devel", "gcc", "gcc musl-dev", "gcc"] };
const GCC: Tool =
    Tool { program: "gcc", packages: ["gcc libc6-dev", "gcc glibc-devel", "gcc", "gcc musl-dev", "gcc"] };
const GXX: Tool = Tool { program: "g++", packages: ["g++", "gcc-c++", "gcc", "g++", "gcc"] };
const CLANG: Tool = Tool { program: "clang", packages: ["clang", "clang", "clang", "clang", "llvm"] };

/// What builds the library and the samples.
pub(crate) const BUILD: &[Tool] = &[CC];
/// What the whole test run needs.
pub(crate) const EVERYTHING: &[Tool] = &[CC, GCC, GXX, CLANG];

/// Makes sure that every tool is there.
pub(crate) fn ensure(tools: &[Tool]) -> Outcome {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !sh::has(tool.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let names = names.join(", ");
    let Some(manager) = MANAGERS.iter().position(|(program, _)| sh::has(program)) else {
        return Err(format!(
            "missing: {names}. Install them with your system's package manager, then run this again"
        ));
    };
    let install = install_command(&missing, manager);
    if MANAGERS[manager].0 == "apt-get" && is_root() {
        println!("missing: {names}");
        apt("update -q")?;
        apt(install.trim_start_matches("apt-get "))?;
        let still: Vec<&str> =
            missing.iter().map(|t| t.program).filter(|program| !sh::has(program)).collect();
        if still.is_empty() {
            return Ok(());
        }
        return Err(format!("`{install}` ran, but {} is still not in PATH", still.join(", ")));
    }
    let sudo = if MANAGERS[manager].0 == "brew" || is_root() { "" } else { "sudo " };
    Err(format!("missing: {names}. Run this, then try again:\n\n    {sudo}{install}\n"))
}

/// Makes sure that cargo has the commands which a minimal toolchain lacks.
pub(crate) fn ensure_components() -> Outcome {
    for (component, command) in [("rustfmt", "fmt --version"), ("clippy", "clippy --version")] {
        if sh::output(&mut sh::cargo(command)).is_ok() {
            continue;
        }
        if !sh::has("rustup") {
            return Err(format!(
                "this Rust toolchain has no {component}: install it the way the toolchain was installed"
            ));
        }
        sh::run(sh::command("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

fn apt(words: &str) -> Outcome {
    sh::run(sh::command("apt-get").args(words.split_whitespace()).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn install_command(missing: &[&Tool], manager: usize) -> String {
    let mut packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages[manager].split(' ')).collect();
    packages.sort_unstable();
    packages.dedup();
    format!("{} {}", MANAGERS[manager].1, packages.join(" "))
}

fn is_root() -> bool {
    sh::output(sh::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_each_package_once() {
        assert_eq!(
            install_command(&[&CC, &GCC, &CLANG], 0),
            "apt-get install -y --no-install-recommends clang gcc libc6-dev"
        );
        assert_eq!(install_command(&[&GXX], 4), "brew install gcc");
    }
}
