//! Reads `include/retick.abi`, and writes C programs that follow from it: one that calls every export with what makes no
//! sense, one that compares every layout.
//!
//! Fed by: the ABI file. Yields: C source. Never: has a list of exports of its own, so that a new one is covered by itself.

use std::fmt::Write;

/// One export.
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) returns: String,
    pub(crate) parameters: Vec<Parameter>,
}

pub(crate) struct Parameter {
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Parameter {
    fn is_pointer(&self) -> bool {
        self.kind.contains('*') || self.kind.ends_with("_fn")
    }

    fn handle(&self) -> Option<&'static str> {
        HANDLES.into_iter().find(|handle| self.kind == *handle)
    }
}

const HANDLES: [&str; 3] = ["retick_mesh", "retick_session", "retick_simnet"];

/// Pointers that may be null, by their docs.
const NULLABLE: &[(&str, &str)] = &[
    ("retick_set_log", "log"),
    ("retick_set_log", "user"),
    ("retick_set_allocator", "user"),
    ("retick_mesh_local_address", "out_len"),
    ("retick_mesh_set_conditioner", "link"),
    ("retick_session_frames_due", "out_alpha"),
];
/// Parameters for which the null handle is fine, by their docs.
const NULL_HANDLES: &[&str] =
    &["retick_mesh_destroy", "retick_session_destroy", "retick_simnet_destroy", "retick_session_create"];

/// The exports of the ABI file.
pub(crate) fn exports(abi: &str) -> Vec<Export> {
    abi.lines()
        .filter_map(|line| line.strip_prefix("export "))
        .map(|line| {
            let (name, signature) = line.split_once(" :: ").expect("name :: signature");
            let (before, arguments) = signature.split_once('(').expect("a function");
            let arguments = arguments.trim_end_matches([')', ';']).replace("struct ", "");
            let parameters = arguments
                .split(", ")
                .filter(|argument| *argument != "void")
                .map(|argument| {
                    let at = argument.rfind([' ', '*']).expect("type and name") + 1;
                    Parameter { kind: argument[..at].trim().to_owned(), name: argument[at..].to_owned() }
                })
                .collect();
            let returns = before.trim_end_matches(name).trim().to_owned();
            Export { name: name.to_owned(), returns, parameters }
        })
        .collect()
}

/// A value with which a call would make sense, were the handles right.
fn good(parameter: &Parameter) -> String {
    let kind = parameter.kind.trim_start_matches("const ");
    match (kind, parameter.name.as_str()) {
        ("retick_log_fn" | "retick_alloc_fn" | "retick_free_fn", _) => "0".into(),
        (_, "address") if kind.starts_with("char") => "\"127.0.0.1:9\"".into(),
        (_, _) if kind == "char *" || kind == "uint8_t *" || kind == "void *" => "(void *)bytes".into(),
        (_, _) if kind.starts_with("retick_") && kind.ends_with(" *") => {
            let name = kind.trim_end_matches(" *");
            if HANDLES.contains(&name) { format!("&out_{name}") } else { format!("prepared_{name}()") }
        }
        (_, _) if kind.ends_with('*') => "(void *)out".into(),
        (_, "step_size") => "sizeof(retick_step)".into(),
        (_, "sample_size") => "sizeof(retick_sample)".into(),
        (_, "struct_size") => "64".into(),
        (_, "address_size") => "4".into(),
        _ => "1".into(),
    }
}

fn call(export: &Export, value: impl Fn(&Parameter) -> String) -> String {
    let arguments: Vec<String> = export.parameters.iter().map(value).collect();
    format!("{}({})", export.name, arguments.join(", "))
}

/// A program that calls every export with null, stale, foreign, random and wrong handles, and with each pointer null.
pub(crate) fn misuse_program(abi: &str) -> String {
    let mut out = String::from(
        "#include \"common.h\"\n\
         static uint8_t bytes[4096];\nstatic void *out[64];\nstatic void *volatile null_pointer;\n",
    );
    for handle in HANDLES {
        let _ = writeln!(out, "static {handle} live_{handle}, stale_{handle}, out_{handle};");
    }
    let structs: Vec<&str> = abi
        .lines()
        .filter_map(|line| line.strip_prefix("struct "))
        .map(|line| line.split(' ').next().expect("a name"))
        .filter(|name| !HANDLES.contains(name))
        .collect();
    for name in structs {
        let _ = writeln!(
            out,
            "static inline {name} *prepared_{name}(void) {{\n    static union {{ {name} value; uint8_t room[4096]; }} it;\n    \
             memset(&it, 0, sizeof it);\n    *(uint32_t *)(void *)&it = sizeof({name});\n    return &it.value;\n}}"
        );
    }
    out.push_str(
        "static retick_session_config good_session_config;\n\
         static uint64_t next_id(void) {\n    static uint64_t x = 99;\n    return x = mix(x + 1);\n}\n\
         static void handles(void) {\n",
    );
    for export in exports(abi) {
        let Some(at) = export.parameters.iter().position(|parameter| parameter.handle().is_some()) else {
            continue;
        };
        let handle = export.parameters[at].handle().expect("found as one");
        let bad = |id: &str| {
            let call = call(&export, |parameter| match parameter.handle() {
                Some(handle) => format!("({handle}){{ {id} }}"),
                // Its configuration must be right for the handle to be looked at.
                None if parameter.kind.contains("retick_session_config") => "&good_session_config".into(),
                None => good(parameter),
            });
            format!("    EXPECT({call}, RETICK_ERR_INVALID_HANDLE);\n")
        };
        if !NULL_HANDLES.contains(&export.name.as_str()) {
            out.push_str(&bad("0"));
        }
        out.push_str(&bad(&format!("stale_{handle}.id")));
        out.push_str(&bad("0xffffffffffffffffu"));
        out.push_str(&bad("next_id()"));
        for other in HANDLES.into_iter().filter(|other| *other != handle) {
            out.push_str(&bad(&format!("live_{other}.id")));
        }
    }
    out.push_str("}\nstatic void nulls(void) {\n");
    for export in exports(abi) {
        if export.name == "retick_last_error" {
            continue;
        }
        for parameter in export.parameters.iter().filter(|parameter| parameter.is_pointer()) {
            if NULLABLE.contains(&(export.name.as_str(), parameter.name.as_str())) {
                continue;
            }
            let call = call(&export, |other| match other.handle() {
                _ if other.name == parameter.name && other.kind.ends_with("_fn") => "0".into(),
                _ if other.name == parameter.name => "null_pointer".into(),
                Some(handle) => format!("live_{handle}"),
                None => good(other),
            });
            let _ = writeln!(out, "    EXPECT({call}, RETICK_ERR_INVALID_ARGUMENT);");
        }
        // Everything null at once, and every number at its largest: any code will do, but nothing may happen.
        if export.returns == "retick_result" && export.name != "retick_shutdown" {
            for number in ["0", "0xffffffffu"] {
                let call = call(&export, |parameter| match parameter.handle() {
                    Some(handle) => format!("live_{handle}"),
                    None if parameter.kind.ends_with("_fn") => "0".into(),
                    None if parameter.is_pointer() => "null_pointer".into(),
                    None => number.into(),
                });
                if !export.name.ends_with("_destroy") {
                    let _ = writeln!(out, "    (void){call};");
                }
            }
        }
    }
    out.push_str("}\n");
    out.push_str(PROGRAM_END);
    out
}

const PROGRAM_END: &str = r"
static void make(retick_mesh *mesh, retick_session *session, retick_simnet *net) {
    retick_mesh_config config;
    retick_session_config session_config;
    OK(retick_simnet_create(1, net));
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = RETICK_IO_SIMNET;
    config.simnet = *net;
    OK(retick_mesh_create(&config, mesh));
    OK(retick_session_config_init(&session_config, sizeof session_config));
    OK(retick_session_create(&session_config, *mesh, session));
}

int main(void) {
    OK(retick_session_config_init(&good_session_config, sizeof good_session_config));
    make(&stale_retick_mesh, &stale_retick_session, &stale_retick_simnet);
    OK(retick_shutdown());
    make(&live_retick_mesh, &live_retick_session, &live_retick_simnet);
    (void)out_retick_mesh; (void)out_retick_session; (void)out_retick_simnet; (void)bytes; (void)out;
    handles();
    nulls();
    OK(retick_mesh_poll(live_retick_mesh));
    OK(retick_shutdown());
    return 0;
}
";

/// `chaos_calls.h`: one function that calls any export with anything that the header's contract allows.
pub(crate) fn chaos_calls(abi: &str) -> String {
    let mut out = String::from("/* Generated by tests/c_abi/abi.rs. */\n");
    let mut cases = String::new();
    let mut number = 0;
    for export in exports(abi) {
        // The first would change what the others allocate with; the second has a rare place of its own.
        if ["retick_set_allocator", "retick_shutdown"].contains(&export.name.as_str()) {
            continue;
        }
        let call = call(&export, |parameter| {
            let kind = parameter.kind.trim_start_matches("const ");
            match parameter.handle() {
                Some(handle) => format!("any_{handle}()"),
                None if kind.ends_with("_fn") => "any_log()".into(),
                None if kind.starts_with("retick_") && kind.ends_with(" *") => {
                    let name = kind.trim_end_matches(" *");
                    format!("({name} *)any_struct_{name}()")
                }
                None if kind == "char *" && parameter.name == "address" => "any_address()".into(),
                None if kind.ends_with('*') => format!("({})any_bytes()", parameter.kind),
                None => format!("({})any_number_{}()", parameter.kind, parameter.name),
            }
        });
        // What ends or begins things would leave no time for a match.
        let rare =
            ["_destroy", "_leave", "net_create", "set_paused"].iter().any(|end| export.name.ends_with(end));
        let chance = if rare { "if (next_random() % 16 == 0) " } else { "" };
        let _ = writeln!(cases, "    case {number}: {chance}(void){call}; break;");
        number += 1;
    }
    for line in abi.lines().filter(|line| line.starts_with("struct ")) {
        let name = line.split(' ').nth(1).expect("a name");
        let _ = writeln!(
            out,
            "static inline void *any_struct_{name}(void) {{ return any_struct(sizeof({name}), \"{name}\"); }}"
        );
    }
    let mut names: Vec<String> = exports(abi)
        .into_iter()
        .flat_map(|export| export.parameters)
        .filter(|parameter| !parameter.is_pointer() && parameter.handle().is_none())
        .map(|parameter| parameter.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let _ = writeln!(
            out,
            "static inline uint64_t any_number_{name}(void) {{ return any_number(\"{name}\"); }}"
        );
    }
    let _ = writeln!(out, "static void any_call(void) {{\n    switch (next_random() % {number}) {{");
    out + &cases + "    }\n}\n"
}

/// A program that compares sizes and offsets as a C compiler sees them with the ABI file, and with the loaded library.
pub(crate) fn layout_program(abi: &str) -> String {
    let mut out = String::from("#include \"common.h\"\n#include <stddef.h>\n\nint main(void) {\n");
    for line in abi.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["struct", name, "size", size] => {
                let _ = writeln!(out, "    EXPECT(sizeof({name}), {size});");
            }
            ["field", field, "offset", offset, "size", size, ..] => {
                let (name, field) = field.split_once('.').expect("struct.field");
                let _ = writeln!(out, "    EXPECT(offsetof({name}, {field}), {offset});");
                let _ = writeln!(out, "    EXPECT(sizeof((({name} *)0)->{field}), {size});");
            }
            ["const", name, ..] if name.starts_with("RETICK_STRUCT_") => {
                let of = name.trim_start_matches("RETICK_STRUCT_").to_lowercase();
                let _ = writeln!(out, "    EXPECT(retick_struct_size({name}), sizeof(retick_{of}));");
            }
            ["const", name, value] => {
                let _ = writeln!(out, "    EXPECT((int64_t){name}, (int64_t){value});");
            }
            _ => {}
        }
    }
    out.push_str("    return 0;\n}\n");
    out
}
