//! The points with the feature on.
//!
//! A passage is counted by name in this process. Whatever cannot be read from the environment ends the
//! process loudly: a test that asks for a fault and gets none would prove nothing.

use std::collections::HashMap;
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::pin::Pin;
use std::process::abort;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll};

use rustix::process::{Signal, getpid, kill_process};

static FAULT: LazyLock<Option<Fault>> =
    LazyLock::new(|| Some(Fault::parse(&env::var("TAILCAR_FAULT").ok()?)));
static PASSAGES: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);

/// What is to happen, where and when.
struct Fault {
    point: String,
    signal: Signal,
    passage: u32,
}

impl Fault {
    fn parse(text: &str) -> Self {
        let mut parts = text.rsplitn(3, ':');
        let passage = parts.next().and_then(|number| number.parse().ok());
        let signal = match parts.next() {
            Some("kill") => Some(Signal::KILL),
            Some("stop") => Some(Signal::STOP),
            _ => None,
        };
        let (Some(passage), Some(signal), Some(point)) = (passage, signal, parts.next()) else {
            eprintln!("TAILCAR_FAULT={text} is not point:kill|stop:passage");
            abort();
        };
        Self { point: point.to_owned(), signal, passage }
    }
}

/// Passes the place `name`: the place at which this process may end or freeze.
pub fn point(name: &'static str) {
    pass(name);
}

fn pass(name: &str) {
    log(name);
    let mut passages = PASSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let count = passages.entry(name.to_owned()).or_insert(0);
    *count += 1;
    let count = *count;
    drop(passages);
    if let Some(fault) = FAULT.as_ref()
        && fault.point == name
        && fault.passage == count
        && kill_process(getpid(), fault.signal).is_err()
    {
        abort();
    }
}

fn log(name: &str) {
    let Ok(path) = env::var("TAILCAR_FAULT_LOG") else { return };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    if file.and_then(|mut file| writeln!(file, "{name}")).is_err() {
        eprintln!("{path} can not be written");
        abort();
    }
}

/// A future between two passages.
pub struct Guarded<F> {
    name: &'static str,
    started: bool,
    future: Pin<Box<F>>,
}

impl<F> Guarded<F> {
    pub(crate) fn new(name: &'static str, future: F) -> Self {
        Self { name, started: false, future: Box::pin(future) }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if !self.started {
            self.started = true;
            pass(&format!("{}.before", self.name));
        }
        let polled = self.future.as_mut().poll(context);
        if polled.is_ready() {
            pass(&format!("{}.after", self.name));
        }
        polled
    }
}
