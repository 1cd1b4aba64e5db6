//! Helper threads for kernel reads that can block, how long they are waited for, and how many can be
//! left behind in one process. Knows no platform and no read.

use crate::census::Deadline;
use crate::error::{Errno, Error};
use crate::guard::guarded;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Admits helpers. One a kind of read and process, so that no more than its places can ever be left
/// behind, whichever Worker made the calls.
#[derive(Debug)]
pub struct Gate {
    places: usize,
    state: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    helpers: usize,
    /// Those of them for which nobody waits any more.
    abandoned: usize,
}

impl Gate {
    /// Nobody inside.
    #[must_use]
    pub const fn new(places: usize) -> Self {
        let nobody = Inside { helpers: 0, abandoned: 0 };
        Self { places, state: Mutex::new(nobody), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room.
    ///
    /// # Errors
    /// [`Error::Timeout`] when the deadline passes, and at once if only helpers that were left behind
    /// are inside.
    pub fn enter(&self, deadline: Deadline) -> Result<(), Error> {
        let mut inside = self.lock();
        while inside.helpers >= self.places {
            if inside.abandoned >= self.places {
                return Err(Error::Timeout);
            }
            let left = deadline.remaining()?.unwrap_or(A_WHILE);
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.helpers = inside.helpers.saturating_add(1);
        Ok(())
    }

    /// The place of this stay is free again.
    pub fn leave(&self, stay: &Stay) {
        let mut inside = self.lock();
        inside.helpers = inside.helpers.saturating_sub(1);
        if stay.state.swap(ENDED, Ordering::Relaxed) == ABANDONED {
            inside.abandoned = inside.abandoned.saturating_sub(1);
        }
        self.changed.notify_all();
    }

    /// Nobody waits for this stay any more, unless it has ended.
    pub fn abandon(&self, stay: &Stay) {
        let mut inside = self.lock();
        let open =
            stay.state.compare_exchange(AWAITED, ABANDONED, Ordering::Relaxed, Ordering::Relaxed);
        if open.is_ok() {
            inside.abandoned = inside.abandoned.saturating_add(1);
        }
        self.changed.notify_all();
    }
}

/// Between two looks of a wait that nothing bounds.
const A_WHILE: Duration = Duration::from_secs(3600);

const AWAITED: u8 = 0;
const ENDED: u8 = 1;
const ABANDONED: u8 = 2;

/// One stay behind a gate. Its state changes under the gate's lock only.
#[derive(Debug)]
pub struct Stay {
    state: AtomicU8,
}

impl Stay {
    /// One that somebody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(AWAITED) }
    }
}

impl Default for Stay {
    fn default() -> Self {
        Self::new()
    }
}

/// A helper's frames are small; what it reads is on the heap.
const HELPER_STACK: usize = 128 << 10;

/// Starts a helper thread.
///
/// # Errors
/// There is no thread to be had.
pub fn start(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = thread::Builder::new().name("proc-safe".into()).stack_size(HELPER_STACK);
    thread.spawn(work).map(drop).map_err(|error| Error::System {
        syscall: "pthread_create",
        errno: Errno(error.raw_os_error().unwrap_or(0)),
        pid: None,
    })
}

/// Reads that a helper makes one after the other, without waiting for its caller.
#[derive(Debug)]
pub struct Errand<T> {
    gate: &'static Gate,
    stay: Arc<Stay>,
    answers: Receiver<Result<T, Error>>,
}

impl<T: Send + 'static> Errand<T> {
    /// Sends a helper to read `subjects` in this order. `prepare` and the reads it returns run on the
    /// helper; the first error ends the errand.
    ///
    /// # Errors
    /// [`Error::Timeout`] without room at the gate, or no thread to be had.
    pub fn start<S: Send + 'static, R: FnMut(S) -> Result<T, Error>>(
        gate: &'static Gate,
        deadline: Deadline,
        subjects: Vec<S>,
        prepare: impl FnOnce() -> Result<R, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        gate.enter(deadline)?;
        let stay = Arc::new(Stay::new());
        let (send, answers) = mpsc::channel();
        let theirs = Arc::clone(&stay);
        let serve = move || {
            let outcome = guarded(|| {
                let mut read = prepare()?;
                let mut left = subjects.len();
                for subject in subjects {
                    let answer = read(subject)?;
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return Ok(Some(answer));
                    }
                    if send.send(Ok(answer)).is_err() {
                        break; // nobody waits any more
                    }
                }
                Ok(None)
            });
            // Before the last answer: whoever has it needs no place to be free in a moment.
            gate.leave(&theirs);
            if let Some(last) = outcome.transpose() {
                let _unheard = send.send(last);
            }
        };
        if let Err(error) = start(serve) {
            gate.leave(&stay);
            return Err(error);
        }
        Ok(Self { gate, stay, answers })
    }

    /// The next answer.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it is not there when the deadline passes; the error of the read.
    pub fn next(&self, deadline: Deadline) -> Result<T, Error> {
        let left = deadline.remaining()?;
        let answer = match left {
            None => self.answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => self.answers.recv_timeout(left),
        };
        match answer {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(Error::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        self.gate.abandon(&self.stay);
    }
}

/// The error of a helper that is not there any more.
#[must_use]
pub fn ended() -> Error {
    Error::Panic("a helper thread has ended".into())
}

#[cfg(test)]
mod tests {
    use super::{Errand, Gate};
    use crate::census::Deadline;
    use crate::error::Error;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    const SOON: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(30);

    fn within(time: Duration) -> Deadline {
        Deadline::after(Some(time))
    }

    fn gate(places: usize) -> &'static Gate {
        Box::leak(Box::new(Gate::new(places)))
    }

    #[test]
    fn answers_come_in_order_and_the_first_error_ends_them() {
        let gate = gate(1);
        for _ in 0..100 {
            let read = |pid| if pid < 3 { Ok(pid) } else { Err(Error::CutShort) };
            let errand =
                Errand::start(gate, within(LONG), vec![1, 2, 3, 4], move || Ok(read)).unwrap();
            let answers: Vec<_> = (0..3).map(|_| errand.next(within(LONG))).collect();
            assert_eq!(answers, [Ok(1), Ok(2), Err(Error::CutShort)]);
            assert!(matches!(errand.next(within(LONG)), Err(Error::Panic(_))));
        }
    }

    #[test]
    fn whoever_has_the_last_answer_finds_the_place_free() {
        let gate = gate(1);
        for _ in 0..2_000 {
            let errand = Errand::start(gate, within(LONG), vec![1, 2], || Ok(Ok)).unwrap();
            assert_eq!([errand.next(within(LONG)), errand.next(within(LONG))], [Ok(1), Ok(2)]);
        }
    }

    #[test]
    fn a_panic_of_the_read_is_an_error_of_the_call() {
        let fall = |_| -> Result<u32, Error> { panic!("the ground gave way") };
        let errand = Errand::start(gate(1), within(LONG), vec![1], move || Ok(fall)).unwrap();
        assert!(matches!(errand.next(within(LONG)), Err(Error::Panic(_))));
    }

    #[test]
    fn helpers_that_are_left_behind_are_bounded_and_come_back() {
        let gate = gate(2);
        let (mut release, mut entered) = (Vec::new(), 0);
        let ask = |held: mpsc::Receiver<()>, time| {
            let read = move |pid| {
                let _released = held.recv();
                Ok(pid)
            };
            Errand::start(gate, within(LONG), vec![7], move || Ok(read))
                .and_then(|errand| errand.next(within(time)))
        };
        let begun = Instant::now();
        for _ in 0..4 {
            let (open, held) = mpsc::channel();
            release.push(open);
            entered += 1;
            let time = if entered > 2 { LONG } else { SOON };
            assert_eq!(ask(held, time), Err(Error::Timeout));
        }
        assert!(begun.elapsed() < LONG / 2, "somebody waited for a place that nobody gives back");
        release.clear();
        let free = || {
            let (open, held) = mpsc::channel();
            drop(open);
            ask(held, LONG)
        };
        assert_eq!(std::iter::repeat_with(free).find(Result::is_ok), Some(Ok(7)));
    }
}
