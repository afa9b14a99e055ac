//! Reads which items a source file of `src/ffi` exports, in their order.
//!
//! Fed by: one Rust file. Yields: names with their kinds; constants with their types.
//! Never: parses more than the first line of an item.

use std::path::{Path, PathBuf};

/// What an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A constant, with its Rust type, and whether a blank line of the source stands before it.
    Const(String, bool),
    /// A struct or a type alias.
    Type,
    /// An exported function.
    Function,
}

/// One source file and its items.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// Name and kind, in order.
    pub(crate) items: Vec<(String, Kind)>,
}

/// Reads one file.
pub(crate) fn read(path: &Path) -> Result<Source, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut items = Vec::new();
    let (mut exported, mut after_gap) = (false, true);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("pub const ") {
            if let Some((name, rest)) = rest.split_once(':') {
                let kind = rest.split('=').next().unwrap_or_default().trim().to_owned();
                items.push((name.to_owned(), Kind::Const(kind, std::mem::take(&mut after_gap))));
            }
        } else if let Some(rest) = line.strip_prefix("pub type ").or_else(|| line.strip_prefix("pub struct "))
        {
            items.push((word(rest), Kind::Type));
        } else if let Some((_, rest)) =
            line.split_once("extern \"C\" fn ").filter(|_| line.starts_with("pub "))
        {
            if !exported {
                return Err(format!("{}: {} lacks #[unsafe(no_mangle)]", path.display(), word(rest)));
            }
            items.push((word(rest), Kind::Function));
        }
        exported = line == "#[unsafe(no_mangle)]";
        after_gap |= line.is_empty();
    }
    if items.is_empty() {
        return Err(format!("{} exports nothing", path.display()));
    }
    Ok(Source { path: path.to_owned(), items })
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}
