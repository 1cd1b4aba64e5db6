//! A panic is a defect in this library; it must end as an error of the call, never as an abort of
//! the host and never as text on its console.
#![allow(clippy::missing_const_for_thread_local)] // both are; clippy 1.96 does not see it on Windows

use crate::error::Error;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `operation`; a panic inside it becomes [`Error::Panic`] with its message and place.
///
/// # Errors
/// Those of `operation`, or [`Error::Panic`].
pub fn guarded<T>(operation: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    remember_guarded_panics();
    let outer = GUARDED.replace(true);
    // What a panic leaves behind is dropped with the closure; the only lock that calls share is
    // taken over when it is poisoned.
    let outcome = panic::catch_unwind(AssertUnwindSafe(operation));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|_| {
        let message = LAST_PANIC.with_borrow_mut(Option::take);
        Err(Error::Panic(message.unwrap_or_else(|| String::from("a panic without a message"))))
    })
}

/// Keeps the message of a guarded panic instead of printing it. Each addon links its own copy of
/// Rust's standard library, so the hook touches no other code in the process.
fn remember_guarded_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                LAST_PANIC.set(Some(info.to_string()));
            } else {
                print(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::guarded;
    use crate::error::{Code, Error, Reason};

    #[test]
    fn a_panic_is_an_error_with_its_place() {
        let error = guarded::<()>(|| panic!("the ground gave way")).unwrap_err();
        assert_eq!((error.code(), error.reason()), (Code::OperationFailed, Some(Reason::Panic)));
        let text = error.to_string();
        assert!(text.contains("the ground gave way") && text.contains("guard.rs"), "{text}");
    }

    #[test]
    fn results_pass_through() {
        assert_eq!(guarded(|| Ok(7)), Ok(7));
        assert_eq!(guarded::<()>(|| Err(Error::Timeout)), Err(Error::Timeout));
    }
}
