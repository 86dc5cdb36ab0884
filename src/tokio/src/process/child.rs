//! [`Child`]: a process that was spawned. A `Child` that is dropped before its process has ended leaves it to
//! the reaper.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Output};
use std::task::{Context, Poll, ready};

use super::exit::Exit;
use super::pipes::{ChildStderr, ChildStdin, ChildStdout, poll_to_end};
use super::reaper;

#[derive(Debug)]
pub struct Child {
    state: State,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

#[derive(Debug)]
enum State {
    Running(Running),
    Done(ExitStatus),
}

#[derive(Debug)]
struct Running {
    /// Present until this is dropped.
    std: Option<std::process::Child>,
    exit: Exit,
    kill_on_drop: bool,
}

impl Child {
    #[track_caller]
    pub(super) fn of(mut std: std::process::Child, kill_on_drop: bool) -> io::Result<Self> {
        let stdin = std.stdin.take().map(ChildStdin::from_std).transpose()?;
        let stdout = std.stdout.take().map(ChildStdout::from_std).transpose()?;
        let stderr = std.stderr.take().map(ChildStderr::from_std).transpose()?;
        let exit = Exit::of(&std)?;
        Ok(Self {
            state: State::Running(Running { std: Some(std), exit, kill_on_drop }),
            stdin,
            stdout,
            stderr,
        })
    }

    pub fn id(&self) -> Option<u32> {
        match &self.state {
            State::Running(running) => running.std.as_ref().map(|std| std.id()),
            State::Done(_) => None,
        }
    }

    pub fn start_kill(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Running(running) => running.kill(),
            State::Done(_) => Ok(()),
        }
    }

    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }

    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        // A child that reads its input to the end would otherwise wait for this process.
        drop(self.stdin.take());
        let status = match &mut self.state {
            State::Running(running) => poll_fn(|cx| running.poll_exit(cx)).await?,
            State::Done(status) => return Ok(*status),
        };
        self.state = State::Done(status);
        Ok(status)
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = match &mut self.state {
            State::Running(running) => running.try_wait()?,
            State::Done(status) => Some(*status),
        };
        if let Some(status) = status {
            self.state = State::Done(status);
        }
        Ok(status)
    }

    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        // The pipes are closed after all streams have ended: a process that writes to a closed pipe is
        // killed.
        let (out, err) = (self.stdout.take(), self.stderr.take());
        let (mut status, mut stdout, mut stderr) = (None, Vec::new(), Vec::new());
        let (mut is_out_done, mut is_err_done) = (out.is_none(), err.is_none());
        let mut wait = pin!(self.wait());
        poll_fn(|cx| {
            if status.is_none() {
                status = so_far(wait.as_mut().poll(cx))?;
            }
            if let (false, Some(out)) = (is_out_done, &out) {
                is_out_done = so_far(poll_to_end(out, cx, &mut stdout))?.is_some();
            }
            if let (false, Some(err)) = (is_err_done, &err) {
                is_err_done = so_far(poll_to_end(err, cx, &mut stderr))?.is_some();
            }
            match status {
                Some(status) if is_out_done && is_err_done => Poll::Ready(Ok(status)),
                _ => Poll::Pending,
            }
        })
        .await
        .map(|status| Output { status, stdout, stderr })
    }
}

fn so_far<T>(poll: Poll<io::Result<T>>) -> io::Result<Option<T>> {
    match poll {
        Poll::Ready(result) => result.map(Some),
        Poll::Pending => Ok(None),
    }
}

impl Running {
    fn std(&mut self) -> &mut std::process::Child {
        self.std.as_mut().expect("it is taken when this is dropped")
    }

    fn kill(&mut self) -> io::Result<()> {
        self.std().kill()?;
        self.kill_on_drop = false;
        Ok(())
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.std().try_wait()?;
        self.kill_on_drop &= status.is_none();
        Ok(status)
    }

    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let std = self.std.as_mut().expect("it is taken when this is dropped");
        let result = ready!(self.exit.poll(cx, std));
        self.kill_on_drop &= result.is_err();
        Poll::Ready(result)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.kill_on_drop {
            // An error means that the child has ended.
            let _ = self.kill();
        }
        if let (Ok(None), Some(std)) = (self.std().try_wait(), self.std.take()) {
            reaper::adopt(std);
        }
    }
}
