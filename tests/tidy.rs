//! Tidy: what the compiler cannot see about this project's files, as tests. Each check is shown to fail on a planted breach.
//!
//! `layers` who may import whom · `rules` sizes, headers, fences, words · `edge` the C exports, the header and the ABI file ·
//! `papers` the Markdown files. `text` takes Rust apart for them.
#[path = "tidy/edge.rs"]
mod edge;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/papers.rs"]
mod papers;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/text.rs"]
mod text;
