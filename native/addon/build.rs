//! Node-API link flags, and the one that keeps the image mapped on Linux.

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Node unloads an addon with the last Worker that loaded it. The image holds one descriptor
        // of /proc and thread-local destructors; unmapped, the first leaks and the second crash.
        println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    }
}
