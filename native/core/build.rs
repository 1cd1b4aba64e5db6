//! Compiles the C shim where its headers are: on macOS, or for it with a cross compiler.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=shim");
    if env::var("CARGO_CFG_TARGET_OS")? == "macos" {
        let shim = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("shim");
        // zig answers cc's question who it is with a file in the current directory.
        env::set_current_dir(env::var("OUT_DIR")?)?;
        cc::Build::new()
            .files(["kernel_record.c", "layouts.c"].map(|file| shim.join(file)))
            .warnings_into_errors(true)
            .extra_warnings(true)
            .flag("-fvisibility=hidden") // else the addon exports it
            .compile("proc_safe_shim");
    }
    Ok(())
}
