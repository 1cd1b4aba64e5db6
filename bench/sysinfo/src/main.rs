//! The sysinfo crate in a process of its own: for each line on standard input one census with parent,
//! user, state and birth, answered with nanoseconds and rows.

use std::io::{BufRead as _, Write as _};
use std::time::Instant;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

fn main() {
    let kind = ProcessRefreshKind::nothing().with_user(UpdateKind::Always).without_tasks();
    let mut out = std::io::stdout();
    let _ = writeln!(out, "ready");
    for _ in std::io::stdin().lock().lines() {
        // Its caches and its processor wake up.
        let mut system = System::new().expect("sysinfo");
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
        let start = Instant::now();
        let mut system = System::new().expect("sysinfo");
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
        let nanos = start.elapsed().as_nanos();
        let _ = writeln!(out, "{nanos} {}", system.processes().len());
        let _ = out.flush();
    }
}
