//! What is fuzzed: one plain function of bytes per decoder.
//!
//! A target panics when a property is broken; [`TARGETS`] lists them. libFuzzer drives them (`cargo xtask fuzz`), the
//! replay of the committed corpora (`cargo xtask test --only fuzz`) calls them on any toolchain, and `blind` mutates without
//! libFuzzer. To add a target: a function here or in a module, a line in the list, a file in
//! `fuzz_targets` and its `[[bin]]`.

pub mod blind;
pub mod decoders;
pub mod meter;
pub mod seeds;

/// One target.
pub struct Target {
    /// Its name on the command line, of its file in `fuzz_targets` and its folder in `corpus`.
    pub name: &'static str,
    /// The property, on any bytes.
    pub run: fn(&[u8]),
    /// Longest input worth trying.
    pub max_len: usize,
    /// Seeded mutations beside each replay: as many as take about a second without optimisation.
    pub mutations: u32,
    /// How golden vectors become inputs: bytes cut from their front, then bytes put there.
    pub shapes: &'static [(usize, &'static [u8])],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "header", run: decoders::header, max_len: 16, mutations: 20_000, shapes: &[(0, &[])] },
    Target {
        name: "sections",
        run: decoders::sections,
        max_len: 1200,
        mutations: 20_000,
        shapes: &[(0, &[])],
    },
    Target {
        name: "inputs",
        run: decoders::inputs,
        max_len: 1200,
        mutations: 20_000,
        shapes: &[(1, &[1, 3]), (1, &[2, 0]), (1, &[0x81, 3])],
    },
    Target {
        name: "fill",
        run: decoders::fill,
        max_len: 1200,
        mutations: 20_000,
        shapes: &[(3, &[1, 1]), (3, &[0x81, 3])],
    },
    Target {
        name: "agreement",
        run: decoders::agreement,
        max_len: 128,
        mutations: 20_000,
        shapes: &[(3, &[0]), (3, &[1]), (3, &[2]), (3, &[3]), (3, &[4])],
    },
    Target {
        name: "bulk",
        run: decoders::bulk,
        max_len: 1100,
        mutations: 20_000,
        shapes: &[(1, &[0]), (1, &[1]), (1, &[2]), (1, &[3]), (1, &[4])],
    },
    Target { name: "control", run: decoders::control, max_len: 1024, mutations: 20_000, shapes: &[(0, &[])] },
    Target {
        name: "handshake",
        run: decoders::handshake,
        max_len: 1200,
        mutations: 20_000,
        shapes: &[(0, &[0]), (0, &[1]), (0, &[2]), (0, &[3]), (0, &[4]), (0, &[5])],
    },
    Target {
        name: "addresses",
        run: decoders::addresses,
        max_len: 80,
        mutations: 20_000,
        shapes: &[(0, &[0]), (0, &[1]), (0, &[2])],
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs the target of that name on an input.
pub fn run(name: &str, input: &[u8]) {
    let target = target(name).expect("a file in `fuzz_targets` names a target of the list");
    (target.run)(input);
}
