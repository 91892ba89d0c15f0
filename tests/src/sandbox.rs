//! One function as a child process that believes to be in Lambda.
//!
//! A sandbox is invoked, killed, frozen and thawed. An invocation that runs past its timeout ends the
//! process, as Lambda does. A sandbox that is dropped is killed.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::watch;

use crate::Result;
use crate::runtime_api::RuntimeApi;

/// How often the state of a process is looked at while waiting for it to freeze.
const LOOK: Duration = Duration::from_millis(2);
/// Longest wait for a process to freeze.
const FREEZE_MAX: Duration = Duration::from_secs(20);

/// How an invocation ended.
#[derive(Debug)]
pub enum Invoked {
    /// The function answered.
    Answered(Value),
    /// The function reported an error; the invocation failed.
    Failed(Value),
    /// The process is gone.
    Died(ExitStatus),
    /// It did not answer in time and was killed.
    TimedOut,
}

impl Invoked {
    /// Whether the process ended as `kill -9` ends one: what a shell calls 137.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        matches!(self, Self::Died(status) if is_137(*status))
    }
}

/// Whether a process ended by SIGKILL.
#[must_use]
pub fn is_137(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

/// A function in its process.
pub struct Sandbox {
    child: Child,
    api: RuntimeApi,
}

impl Sandbox {
    /// Starts `executable` with `environment` and nothing else of this process's environment but `PATH`.
    ///
    /// Its output goes to the end of `log`.
    ///
    /// # Errors
    ///
    /// The process can not be started.
    pub async fn start(
        executable: &Path,
        arguments: &[&str],
        environment: &[(String, String)],
        log: &Path,
    ) -> Result<Self> {
        let api = RuntimeApi::bind().await?;
        let mut command = command(executable, arguments, environment, log)?;
        command
            .env("AWS_LAMBDA_RUNTIME_API", api.address())
            .env("AWS_LAMBDA_FUNCTION_NAME", executable.file_name().unwrap_or_default())
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1");
        Ok(Self { child: Child::spawn(command)?, api })
    }

    /// Invokes the function once and waits for how it ends.
    pub async fn invoke(&mut self, event: Value, timeout: Duration) -> Invoked {
        self.invoke_until(event, timeout, timeout).await
    }

    /// The same, with a deadline that is earlier than the end.
    pub async fn invoke_until(&mut self, event: Value, deadline: Duration, timeout: Duration) -> Invoked {
        let answer = self.api.offer(event, deadline);
        let mut exited = self.child.exited.clone();
        let ended = async { exited.wait_for(Option::is_some).await.ok().and_then(|status| *status) };
        tokio::select! {
            Ok(answer) = answer => answer.map_or_else(Invoked::Failed, Invoked::Answered),
            Some(status) = ended => Invoked::Died(status),
            () = tokio::time::sleep(timeout) => {
                self.kill().await;
                Invoked::TimedOut
            }
        }
    }

    /// Begins an invocation whose answer nobody waits for here.
    pub fn begin(
        &mut self,
        event: Value,
        timeout: Duration,
    ) -> tokio::sync::oneshot::Receiver<crate::runtime_api::Answer> {
        self.api.offer(event, timeout)
    }

    /// Whether the process has not ended.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.child.exited.borrow().is_none()
    }

    /// What signals the process while somebody else invokes it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { pid: self.child.pid, exited: self.child.exited.clone() }
    }

    /// Ends the process as a lost host does and waits until it is gone.
    pub async fn kill(&mut self) {
        self.child.signal(Signal::KILL);
        self.child.wait().await;
    }

    /// Waits until the process has frozen itself.
    ///
    /// # Errors
    ///
    /// It ended, or did not freeze in 20 s.
    pub async fn frozen(&self) -> Result<()> {
        let started = Instant::now();
        while !self.child.is_stopped() {
            if !self.lives() || started.elapsed() > FREEZE_MAX {
                return Err("the process did not freeze".into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        self.child.signal(Signal::CONT);
    }
}

/// Runs a program that is no function to its end.
///
/// # Errors
///
/// It can not be started.
pub async fn run(
    executable: &Path,
    arguments: &[&str],
    environment: &[(String, String)],
    log: &Path,
) -> Result<ExitStatus> {
    let mut child = Child::spawn(command(executable, arguments, environment, log)?)?;
    child.wait().await.ok_or_else(|| "nobody knows how the process ended".into())
}

fn command(
    executable: &Path,
    arguments: &[&str],
    environment: &[(String, String)],
    log: &Path,
) -> Result<Command> {
    let log: File = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(executable);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    Ok(command)
}

/// Signals a process for as long as it lives.
#[derive(Clone)]
pub struct Handle {
    pid: Pid,
    exited: watch::Receiver<Option<ExitStatus>>,
}

impl Handle {
    /// Ends the process as a lost host does.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Freezes the process, as Lambda freezes a sandbox.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if self.exited.borrow().is_none() {
            // It may end at this instant; then there is nobody to signal.
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// A process, and a thread that waits for its end.
struct Child {
    pid: Pid,
    exited: watch::Receiver<Option<ExitStatus>>,
}

impl Child {
    fn spawn(mut command: Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let (ended, exited) = watch::channel(None);
        std::thread::spawn(move || {
            let status = child.wait();
            // Nobody is left to hear it when the sandbox was dropped.
            let _ = ended.send(status.ok());
        });
        Ok(Self { pid, exited })
    }

    async fn wait(&mut self) -> Option<ExitStatus> {
        self.exited.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    fn signal(&self, signal: Signal) {
        Handle { pid: self.pid, exited: self.exited.clone() }.signal(signal);
    }

    /// The third field of `/proc/…/stat`, after a name in parentheses.
    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
