//! The processes in which the emulator runs the functions, and how to kill one.
//!
//! A process counts as a sandbox only if its parent is the emulator and its environment names a
//! function; both are looked at again right before it is killed. Nothing else is ever touched.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// One process of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Its process id.
    pub pid: u32,
    /// The deployed function's name.
    pub function: String,
}

/// The sandboxes of one emulator.
#[derive(Clone, Copy, Debug)]
pub struct Sandboxes {
    emulator: u32,
}

impl Sandboxes {
    /// Those whose parent is the process `emulator`.
    #[must_use]
    pub fn of(emulator: u32) -> Self {
        Self { emulator }
    }

    /// Every sandbox that lives now.
    ///
    /// # Errors
    ///
    /// Where there is no `/proc`.
    pub fn all(self) -> io::Result<Vec<Sandbox>> {
        let pids = std::fs::read_dir("/proc")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        Ok(pids.filter_map(|pid| self.look_at(pid)).collect())
    }

    /// Ends `sandbox` with SIGKILL. Returns whether it was still there.
    ///
    /// # Errors
    ///
    /// If `kill` can not be run.
    pub fn kill(self, sandbox: &Sandbox) -> io::Result<bool> {
        if self.look_at(sandbox.pid).as_ref() != Some(sandbox) {
            return Ok(false);
        }
        let status = Command::new("kill").arg("-KILL").arg(sandbox.pid.to_string()).status()?;
        Ok(status.success())
    }

    fn look_at(self, pid: u32) -> Option<Sandbox> {
        if parent(pid)? != self.emulator {
            return None;
        }
        let function = variable(pid, "AWS_LAMBDA_FUNCTION_NAME")?;
        Some(Sandbox { pid, function })
    }
}

fn of_process(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// The parent of a process that is not a zombie.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(of_process(pid, "stat")).ok()?;
    // The name stands in parentheses and may hold spaces and parentheses of its own.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}

fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(of_process(pid, "environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let (key, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        (key == name).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> std::process::Child {
        let mut child =
            Command::new("sleep").arg("60").env("AWS_LAMBDA_FUNCTION_NAME", "news-consumer").spawn().unwrap();
        // Between fork and exec the child still has our own environment.
        while variable(child.id(), "AWS_LAMBDA_FUNCTION_NAME").is_none() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn child_that_names_a_function_is_found_and_killed() {
        let mut child = sleeper();
        let sandboxes = Sandboxes::of(std::process::id());
        let sandbox = Sandbox { pid: child.id(), function: "news-consumer".to_owned() };

        assert!(sandboxes.all().unwrap().contains(&sandbox));
        assert!(sandboxes.kill(&sandbox).unwrap());
        assert!(!child.wait().unwrap().success());
        assert!(!sandboxes.kill(&sandbox).unwrap());
    }

    #[test]
    fn child_of_somebody_else_is_never_killed() {
        let mut child = sleeper();
        let sandbox = Sandbox { pid: child.id(), function: "news-consumer".to_owned() };

        assert!(!Sandboxes::of(1).kill(&sandbox).unwrap());
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn process_of_another_function_is_not_the_one_that_was_seen() {
        let mut child = sleeper();
        let sandbox = Sandbox { pid: child.id(), function: "relay".to_owned() };

        assert!(!Sandboxes::of(std::process::id()).kill(&sandbox).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
