//! Decides whether every dependency's licence is on the allow list of `deny.toml`.
//!
//! Fed by: `cargo tree` and `deny.toml`. Yields: the packages that are not allowed. Never: needs `cargo deny`.

use crate::sh::{self, Outcome};

/// Checks every package of the lock file, for every target.
pub(crate) fn check() -> Outcome {
    let file = sh::root().join("deny.toml");
    let deny = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let allowed = allow_list(&deny).ok_or("deny.toml has no `allow = [ … ]` under [licenses]")?;
    let tree = sh::output(
        sh::cargo("tree --workspace --locked --target all --edges all --no-dedupe --prefix none --format")
            .arg("{p}\t{l}"),
    )?;
    let mut packages: Vec<(&str, &str)> = tree.lines().filter_map(|line| line.split_once('\t')).collect();
    packages.sort_unstable();
    packages.dedup();
    // Workspace members have a path; only `retick` itself is shipped, and its licence is ours to choose.
    packages.retain(|(name, _)| !name.contains("(/"));
    let bad: Vec<String> = packages
        .iter()
        .filter(|(name, licence)| !is_allowed(licence, &allowed) && !is_excepted(name, licence, &deny))
        .map(|(name, licence)| format!("{name}: `{licence}`"))
        .collect();
    println!(
        "{} packages, {} licences allowed, {} packages not allowed",
        packages.len(),
        allowed.len(),
        bad.len()
    );
    if packages.is_empty() {
        return Err("`cargo tree` listed no package".into());
    }
    if bad.is_empty() {
        Ok(())
    } else {
        Err(format!("not on the allow list of deny.toml: {}", bad.join("; ")))
    }
}

/// The strings of `allow = [ … ]` in the section `[licenses]`.
fn allow_list(deny: &str) -> Option<Vec<String>> {
    let section = deny.split("\n[").find(|part| part.trim_start_matches('[').starts_with("licenses]"))?;
    let list = section.split("\nallow = [").nth(1)?.split(']').next()?;
    Some(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Whether a section `[[licenses.exceptions]]` names the package (`name v1.2.3`) and allows its licence.
fn is_excepted(package: &str, licence: &str, deny: &str) -> bool {
    let name = package.split(' ').next().unwrap_or_default();
    deny.split("\n[[licenses.exceptions]]").skip(1).any(|part| {
        let part = part.split("\n[").next().unwrap_or_default();
        let list =
            part.split("\nallow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
        let allowed: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        part.contains(&format!("crate = \"{name}\"")) && is_allowed(licence, &allowed)
    })
}

/// Evaluates an SPDX expression: `OR` needs one side, `AND` both; `/` is an old way to write `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let ok = any(&mut rest, allowed);
    ok && rest.is_empty()
}

fn any(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut ok = all(words, allowed);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        ok |= all(words, allowed);
    }
    ok
}

fn all(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut ok = one(words, allowed);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        ok &= one(words, allowed);
    }
    ok
}

fn one(words: &mut &[&str], allowed: &[String]) -> bool {
    let Some((&word, rest)) = words.split_first() else { return false };
    *words = rest;
    if word == "(" {
        let ok = any(words, allowed);
        let closed = words.first() == Some(&")");
        *words = words.get(1..).unwrap_or_default();
        return ok && closed;
    }
    let mut licence = word.to_owned();
    if let ["WITH", exception, rest @ ..] = *words {
        licence = format!("{word} WITH {exception}");
        *words = rest;
    }
    allowed.contains(&licence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_needs_one_side_of_or_and_both_of_and() {
        let allowed = ["MIT".to_owned(), "ISC".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT MIT", "MIT WITH Something"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn the_allow_list_is_the_one_of_its_section() {
        let deny = "[bans]\nallow = [\"no\"]\n\n[licenses]\nallow = [\n  \"MIT\",\n  \"ISC\",\n]\n";
        assert_eq!(allow_list(deny), Some(vec!["MIT".into(), "ISC".into()]));
        assert_eq!(allow_list("[bans]\n"), None);
    }

    #[test]
    fn an_exception_holds_for_one_package_and_its_licence() {
        let deny = "[licenses]\nallow = [\"MIT\"]\n\n[[licenses.exceptions]]\ncrate = \"gen\"\nallow = [\"MPL-2.0\"]\n\n[bans]\n";
        assert!(is_excepted("gen v0.1.0", "MPL-2.0", deny));
        assert!(!is_excepted("gen v0.1.0", "GPL-3.0", deny));
        assert!(!is_excepted("other v0.1.0", "MPL-2.0", deny));
    }
}
