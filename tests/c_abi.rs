//! The C ABI from the outside: C programs, compiled here against the built library, and the header itself.
//!
//! Fed by: `include/`, `tests/c`, the C compilers of the machine (`cc` must exist; the others are used where they do).
//! Yields: pass or fail, with the program's output. Never: calls the library from Rust.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "programs of the real world are timed here"
)]

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

#[path = "c_abi/abi.rs"]
mod abi;

const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Wundef", "-Werror"];
const SANITIZERS: &[&str] =
    &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

#[test]
fn the_header_alone_compiles_without_a_warning_in_every_c_and_cpp_of_every_compiler() {
    let mut compiled = 0;
    for (compilers, language, standards) in [
        (["gcc", "clang"], "c", ["c99", "c11", "c17"]),
        (["g++", "clang++"], "c++", ["c++11", "c++17", "c++20"]),
    ] {
        for compiler in compilers.into_iter().filter(|compiler| exists(compiler)) {
            for standard in standards {
                for define in ["-DRETICK_SHARED_USE", "-DRETICK_STATIC"] {
                    let mut command = Command::new(compiler);
                    command.args(["-fsyntax-only", "-x", language, define]).arg(format!("-std={standard}"));
                    command.args(WARNINGS).arg(root().join("include/retick.h"));
                    expect_success(&format!("{compiler} {standard}"), &run(command));
                    compiled += 1;
                }
            }
        }
    }
    assert!(compiled >= 6, "no C compiler was found");
}

#[test]
fn e09_no_bool_and_no_type_of_varying_size_is_in_the_header() {
    let header = read("include/retick.h");
    let code = without_comments(&header);
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let found: Vec<&str> = words
        .filter(|word| {
            [
                "bool", "_Bool", "size_t", "long", "short", "int", "unsigned", "enum", "union", "double",
                "wchar_t",
            ]
            .contains(word)
        })
        .collect();
    assert_eq!(found, Vec::<&str>::new());
    assert!(!code.contains("..."), "no variable arguments");
    let includes: Vec<&str> = code.lines().filter(|line| line.starts_with("#include")).collect();
    assert_eq!(includes, ["#include <stdint.h>"]);
    // The control: the search sees what it looks for.
    assert!(without_comments("int32_t f(bool x); /* size_t */").contains("bool"));
}

#[test]
fn every_export_is_documented_with_its_thread_rule_and_its_version() {
    let header = read("include/retick.h");
    for export in abi::exports(&read("include/retick.abi")) {
        let at = header.find(&format!("{}(", export.name)).expect("declared");
        let comment = &header[header[..at].rfind("/**").expect("documented")..at];
        for needed in ["Thread: ", "Since: ", "\\returns "] {
            assert!(comment.contains(needed), "{} lacks {needed}", export.name);
        }
        for parameter in &export.parameters {
            let mentioned = comment.lines().any(|line| {
                line.trim_start().strip_prefix("* \\param ").is_some_and(|rest| {
                    rest.split(' ').take(2).any(|word| word.trim_end_matches(',') == parameter.name)
                })
            });
            assert!(mentioned, "{} does not say what {} is", export.name, parameter.name);
        }
    }
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_nothing_else() {
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only"]).arg(Library::find().shared);
    let output = run(command);
    expect_success("nm", &output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut exported: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let declared = abi::exports(&read("include/retick.abi"));
    let mut declared: Vec<&str> = declared.iter().map(|export| export.name.as_str()).collect();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}

#[test]
fn the_layout_is_the_same_in_c_in_the_library_and_in_the_abi_file() {
    let program = Program::from_text("layout", &abi::layout_program(&read("include/retick.abi")));
    program.build(&[]).run(&[]);
}

#[test]
fn every_export_survives_nulls_and_handles_that_name_nothing() {
    let program = Program::from_text("nulls", &abi::misuse_program(&read("include/retick.abi")));
    program.build(SANITIZERS).run(&[]);
}

/// Any call with any argument that the contract allows, also from inside callbacks and while step lists are open.
#[test]
fn no_order_of_calls_breaks_anything() {
    let calls = work_folder().join("chaos_calls.h");
    std::fs::write(calls, abi::chaos_calls(&read("include/retick.abi")))
        .expect("the target folder can be written");
    let include = format!("-I{}", work_folder().display());
    let program = Program::of("chaos").build(&[SANITIZERS, &[include.as_str()]].concat());
    for seed in ["1", "2", "3", "4", "5", "6"] {
        program.run(&[seed, "20000"]);
    }
}

#[test]
fn e13_stale_foreign_and_random_handles_and_odd_struct_sizes_are_refused() {
    Program::of("misuse").build(SANITIZERS).run(&[]);
}

#[test]
fn calls_from_inside_callbacks_are_busy_where_they_make_no_sense() {
    Program::of("reentry").build(SANITIZERS).run(&[]);
}

#[test]
fn e12_two_threads_in_one_handle_are_ok_or_busy() {
    Program::of("threads").build(SANITIZERS).run(&[]);
}

#[test]
fn e04_a_process_with_a_live_session_exits_within_a_second() {
    let program = Program::of("exit").build(SANITIZERS);
    for how in ["young", "match", "exit"] {
        let mut child =
            Command::new(&program.0).arg(how).stdout(Stdio::piped()).spawn().expect("it was just built");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it says when it leaves");
        assert_eq!(line, "leaving\n", "{how}");
        let begun = Instant::now();
        let status = child.wait().expect("it ends");
        assert!(begun.elapsed() < Duration::from_secs(1), "{how} took {:?}", begun.elapsed());
        assert_eq!(status.code(), Some(0), "{how}");
    }
}

#[test]
fn create_and_destroy_two_hundred_times_leaves_no_thread_and_no_file() {
    Program::of("lifecycle").build(SANITIZERS).run(&[]);
}

#[test]
fn whole_matches_through_the_c_api_agree_in_every_form_and_state_mode() {
    Program::of("match").build(SANITIZERS).run(&[]);
}

#[test]
fn the_static_library_does_the_same() {
    Program::of("match").build_static(&[]).run(&[]);
}

#[test]
fn b35_ten_sessions_over_a_custom_transport_and_three_over_ipv6_share_one_process() {
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    Program::of("custom").build(SANITIZERS).run(if has_ipv6 { &[] } else { &["no-ipv6"] });
}

#[test]
fn over_real_sockets_queues_push_back_logs_arrive_and_a_session_outlives_its_mesh() {
    Program::of("sockets").build(SANITIZERS).run(&[]);
}

#[test]
fn a_steady_frame_allocates_nothing_in_either_half() {
    // Without sanitizers, whose allocator is slow.
    let program = Program::of("allocations").build(&[]);
    for players in ["2", "4", "10"] {
        program.run(&[players]);
    }
}

#[test]
fn the_smallest_program_is_complete_and_short() {
    let source = read("samples/c/minimal/minimal.c");
    let netcode = source.split("/* ---- ").nth(1).expect("marked");
    let lines = netcode.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    assert!((20..60).contains(&lines), "{lines} lines of netcode");
    let program = Program { name: "minimal".into(), source: root().join("samples/c/minimal/minimal.c") };
    let output = program.build(SANITIZERS).run(&[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("agree"));
}

#[test]
fn a_cpp_program_links_and_plays() {
    if exists("g++") {
        let program = Program::of("match");
        let mut command = Command::new("g++");
        command
            .args(["-std=c++17", "-fpermissive", "-w", "-x", "c++"])
            .arg(&program.source)
            .args(["-x", "none"]);
        program.finish(command, &[]).run(&[]);
    }
}

/// The built library.
struct Library {
    shared: PathBuf,
    statics: PathBuf,
}

impl Library {
    /// Cargo builds it beside this test, since it is another kind of the same crate.
    fn find() -> Self {
        let test = env::current_exe().expect("this test is a file");
        let beside = test.parent().expect("in a folder");
        let (shared, statics) = (beside.join("libretick.so"), beside.join("libretick.a"));
        assert!(shared.exists(), "{} was not built", shared.display());
        assert!(statics.exists(), "{} was not built", statics.display());
        Self { shared, statics }
    }
}

/// A folder of this test run for what is compiled.
fn work_folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("c_abi");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

struct Program {
    name: String,
    source: PathBuf,
}

impl Program {
    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), source: root().join("tests/c").join(name).with_extension("c") }
    }

    fn from_text(name: &str, text: &str) -> Self {
        let source = work_folder().join(name).with_extension("c");
        std::fs::write(&source, text).expect("the target folder can be written");
        Self { name: name.to_owned(), source }
    }

    fn compiler() -> Command {
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1"]).args(WARNINGS);
        command
    }

    /// Against the shared library.
    fn build(&self, flags: &[&str]) -> Built {
        let mut command = Self::compiler();
        command.arg(&self.source);
        self.finish(command, flags)
    }

    fn finish(&self, mut command: Command, flags: &[&str]) -> Built {
        let library = Library::find();
        let folder = work_folder();
        // The loader looks for the soname, which has a version.
        let link = folder.join("libretick.so.0.1");
        let ours = folder.join(format!("link-{}-{}", self.name, std::process::id()));
        let _ = std::fs::remove_file(&ours);
        std::os::unix::fs::symlink(&library.shared, &ours).expect("a link can be made");
        std::fs::rename(&ours, &link).expect("a link can be replaced");
        let out = folder.join(&self.name).with_extension(if flags.is_empty() { "plain" } else { "checked" });
        command.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("tests/c")).args(flags);
        command.arg("-o").arg(&out).arg(&library.shared).arg(format!("-Wl,-rpath,{}", folder.display()));
        command.args(["-lpthread", "-lm"]);
        expect_success(&format!("compiling {}", self.name), &run(command));
        Built(out)
    }

    /// Against the static library.
    fn build_static(&self, flags: &[&str]) -> Built {
        let out = work_folder().join(&self.name).with_extension("static");
        let mut command = Self::compiler();
        command.arg("-DRETICK_STATIC").arg("-I").arg(root().join("include")).args(flags);
        command.arg("-o").arg(&out).arg(&self.source).arg(Library::find().statics);
        command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
        expect_success(&format!("compiling {}", self.name), &run(command));
        Built(out)
    }
}

struct Built(PathBuf);

impl Built {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.0);
        command.args(arguments);
        let output = run(command);
        expect_success(&format!("{} {arguments:?}", self.0.display()), &output);
        output
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the repository")
}

fn exists(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn run(mut command: Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"))
}

fn expect_success(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn without_comments(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}
