//! Node-API link flags, and those of the systems.

fn main() {
    napi_build::setup();
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        // Node unloads an addon with the last Worker that loaded it. The image holds one descriptor
        // of /proc and thread-local destructors; unmapped, the first leaks and the second crash.
        Ok("linux") => println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete"),
        Ok("macos") => {
            // Libraries that the crates name and nothing uses.
            println!("cargo:rustc-link-arg-cdylib=-Wl,-dead_strip_dylibs");
            // Without a name of its own the library has the path that it was linked at.
            println!("cargo:rustc-link-arg-cdylib=-Wl,-install_name,@rpath/proc_safe_addon.node");
        }
        _ => {}
    }
}
