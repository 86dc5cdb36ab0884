//! One server process and one or two load processes produce one figure.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::child::{Child, Talk};
use super::division::confine;
use super::plan::Plan;
use super::procfs::{Usage, eventually};
use crate::{descriptors, handler, load};

/// A running rival.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a rival with one executor.
    pub(crate) fn start(rival: &str, plan: &Plan) -> io::Result<Server> {
        Server::start_several(rival, plan, 1)
    }

    /// Starts a rival on the server's CPUs, and waits until every executor in it accepts, on ports from
    /// `port` on.
    fn start_several(rival: &str, plan: &Plan, executors: u16) -> io::Result<Server> {
        let port = next_ports(executors);
        let mut command = command_for(rival, port, plan.threads)?;
        confine(&mut command, &plan.place().server);
        command.arg("--executors").arg(executors.to_string());
        // One calibration for all servers: two calibrations on a noisy machine differ more than rivals do.
        command.arg("--steps-per-micro").arg(handler::steps_per_micro().to_string());
        let child = Child::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        let mut server = Server { child, port };
        let connects = |port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok();
        for port in port..port + executors {
            if !eventually(Duration::from_secs(5), || connects(port) || server.child.ended().is_some()) {
                return Err(io::Error::other(format!("{rival} does not accept within 5 s")));
            }
        }
        server.still_runs()?;
        Ok(server)
    }

    /// Returns `Err` if the server has ended, which no server does by itself.
    pub(crate) fn still_runs(&mut self) -> io::Result<()> {
        match self.child.ended() {
            Some(status) => Err(io::Error::other(format!("the server ended: {status}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }
}

fn command_for(rival: &str, port: u16, threads: usize) -> io::Result<Command> {
    let mut command = if rival == super::ace::NAME {
        Command::new(super::ace::program().map_err(io::Error::other)?)
    } else if let Some(program) = super::swapped::program(rival) {
        Command::new(program.map_err(io::Error::other)?)
    } else {
        let mut command = Command::new(own_program()?);
        command.args(["serve", rival]);
        command
    };
    command.arg(port.to_string()).arg("--threads").arg(threads.to_string());
    Ok(command)
}

fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Returns the first of `count` consecutive free ports. Every server gets new ports, so that no connection of
/// the previous server is in the way. The ports are below the range from which the kernel serves clients.
fn next_ports(count: u16) -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 18_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let origin = (std::process::id() % u32::from(COUNT)) as u16;
    loop {
        let first = FIRST + (origin + TAKEN.fetch_add(count, Ordering::Relaxed)) % COUNT;
        if (first..first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}

/// A load process that has had an answer on each connection, and waits for [`Load::go`].
#[derive(Debug)]
pub(crate) struct Load {
    _child: Child,
    talk: Talk,
}

impl Load {
    /// Starts a load on the CPUs for it.
    pub(crate) fn connect(load: &load::Plan, plan: &Plan) -> io::Result<Load> {
        let mut command = Command::new(own_program()?);
        confine(&mut command, &plan.place().load);
        command.arg("load").args(load.to_arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Child::spawn(&mut command)?;
        let mut talk = Talk::with(&mut child)?;
        match talk.line()?.trim() {
            load::CONNECTED => Ok(Load { _child: child, talk }),
            reason => Err(io::Error::other(reason)),
        }
    }

    pub(crate) fn go(&mut self) -> io::Result<()> {
        self.talk.say("go")
    }

    /// Returns when the warm-up has ended.
    pub(crate) fn begun(&mut self) -> io::Result<()> {
        self.talk.line().map(drop)
    }

    /// Returns when the window has ended.
    pub(crate) fn result(&mut self) -> io::Result<Value> {
        serde_json::from_str(&self.talk.line()?).map_err(io::Error::other)
    }
}

/// The figures of one window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) requests_per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) cpu_micros: f64,
    pub(crate) voluntary: f64,
    pub(crate) involuntary: f64,
    pub(crate) peak_mib: f64,
    /// The requests per second of the other load, if there is one.
    pub(crate) slow_per_second: f64,
    /// Connections without any answer within the window.
    pub(crate) starved: f64,
    /// CPU use of the load generator's threads, in percent: near a hundred the generator limits the rate.
    pub(crate) load: f64,
    pub(crate) errors: u64,
}

/// Another load on the same server, during the whole time.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) path: String,
    pub(crate) connections: usize,
}

/// Starts the rival with as many executors as the load says, loads it, and reads its usage within the window.
/// Server and load are on the CPUs that the plan has for them. Fills in the load's port.
pub(crate) fn measure(
    rival: &str,
    plan: &Plan,
    load: &load::Plan,
    beside: Option<&Beside>,
) -> io::Result<Run> {
    possible(rival, load.connections)?;
    let mut server = Server::start_several(rival, plan, load.executors)?;
    let short = load::Plan { port: server.port, ..load.clone() };
    let mut load = Load::connect(&short, plan)?;
    let mut slow = None;
    if let Some(beside) = beside.filter(|beside| beside.connections > 0) {
        let (path, connections) = (beside.path.clone(), beside.connections);
        let mut other = Load::connect(&load::Plan { path, connections, threads: 1, ..short }, plan)?;
        other.go()?;
        slow = Some(other);
    }
    load.go()?;
    load.begun()?;
    let before = Usage::of(server.id());
    let result = load.result()?;
    let after = Usage::of(server.id());
    server.still_runs()?;
    let slow = slow.map(|mut slow| slow.begun().and_then(|()| slow.result())).transpose()?;
    Ok(run(&result, slow.as_ref(), &before, &after))
}

/// Checks that a rival can serve so many connections. `Err` has the reason for the tables.
fn possible(rival: &str, connections: usize) -> io::Result<()> {
    // ACE_TP_Reactor waits with select().
    const SELECT_LIMIT: usize = 900;
    descriptors::allow(connections)?;
    if rival == super::ace::NAME && connections > SELECT_LIMIT {
        return Err(io::Error::other("ACE_TP_Reactor uses select(), which ends at 1 024 descriptors"));
    }
    Ok(())
}

fn run(result: &Value, slow: Option<&Value>, before: &Usage, after: &Usage) -> Run {
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
    let rate = |value: &Value| number(value, "requests") / number(value, "seconds").max(1e-9);
    let requests = number(result, "requests").max(1.0);
    Run {
        requests_per_second: rate(result),
        p50: number(result, "p50"),
        p99: number(result, "p99"),
        p999: number(result, "p999"),
        cpu_micros: after.cpu_since(before).as_secs_f64() * 1e6 / requests,
        voluntary: after.voluntary.saturating_sub(before.voluntary) as f64 / requests,
        involuntary: after.involuntary.saturating_sub(before.involuntary) as f64 / requests,
        peak_mib: after.peak_kib as f64 / 1024.0,
        slow_per_second: slow.map_or(0.0, rate),
        starved: number(result, "starved"),
        load: number(result, "busy") * 100.0,
        errors: result["errors"].as_u64().unwrap_or(0),
    }
}
