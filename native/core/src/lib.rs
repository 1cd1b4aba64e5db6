//! What a process census is: facts, algorithms and errors, as a plain Rust library.
//!
//! Each platform is an algorithm over a small trait of kernel reads, compiled and tested on every
//! platform. Only [`sys`] touches the operating system. Nothing here knows Node-API.

pub mod census;
pub mod command;
pub mod darwin;
pub mod error;
pub mod facts;
pub mod guard;
pub mod helpers;
pub mod linux;
pub mod sys;
pub mod windows;
