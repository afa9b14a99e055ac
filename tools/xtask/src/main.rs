//! The one entry point for people and CI: `cargo xtask demo`, `cargo xtask test`, `cargo xtask help`.
//!
//! Decides which commands exist and what they are called; the work is in the modules.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod bench;
mod demo;
mod fuzz;
mod licences;
mod peers;
mod setup;
mod sh;
mod sim;
mod status;
mod test;
mod threads;
mod versus;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Sets retick up, shows it, and tests it.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays a real match: builds the library and the C sample, starts processes with bots over UDP, shows that all agree
    Demo(demo::Options),
    /// Sets up and runs everything that CI runs; the last line says how many parts passed
    Test(test::Options),
    /// Whole meshes by seed in virtual time; also how a failing seed is played again
    Sim(sim::Options),
    /// Hostile bytes to every decoder, for some minutes; what breaks one is kept
    Fuzz(fuzz::Options),
    /// Whole meshes and real processes against the bars, each beside its figure; writes docs/measurements
    Bench(bench::Options),
    /// retick beside other libraries in one run, as ratios; writes docs/measurements
    Versus(versus::Options),
    /// Only installs the system packages that `demo` and `test` need
    Setup,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Versus(options) => versus::run(&options),
        Command::Setup => setup::ensure(setup::EVERYTHING),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            if !problem.is_empty() {
                eprintln!("\nerror: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}
