//! Compiles the C shim where its headers are: on macOS, or for it with a cross compiler.

fn main() {
    println!("cargo:rerun-if-changed=shim");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") {
        cc::Build::new()
            .file("shim/kernel_record.c")
            .warnings_into_errors(true)
            .extra_warnings(true)
            .compile("proc_safe_shim");
    }
}
