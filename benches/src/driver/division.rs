//! Divides the machine's CPUs between a server and its load, so that neither takes time from the other.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

/// Microseconds that a request without work costs a server: 4.8 on a slow core.
const SERVER: usize = 5;

/// Microseconds that a request costs the load: up to 7 on the same core, and a reserve, so that the load is
/// not the limit.
const LOAD: usize = 8;

/// The CPUs of a server and those of its load; both empty if each process may run anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Division {
    /// In the order in which workers need them: the first hardware thread of each core, then the second ones.
    pub(crate) server: Vec<usize>,
    pub(crate) load: Vec<usize>,
}

impl Division {
    /// Returns the division of this machine for requests without work; the empty one if the system does not
    /// tell its CPUs.
    pub(crate) fn here() -> Division {
        Division::of(&cores().unwrap_or_default(), 0)
    }

    /// Divides the cores, each with its hardware threads, in proportion to what a request with so much work
    /// costs the server and the load, but at most half of them for the load. The load gets whole cores, the
    /// last ones. The hardware threads of a single core are divided. Both sides share a single one.
    pub(crate) fn of(cores: &[Vec<usize>], micros: usize) -> Division {
        let mut server = cores.to_vec();
        if let [core] = cores {
            server = core.iter().map(|cpu| vec![*cpu]).collect();
        }
        let cpus: usize = server.iter().map(Vec::len).sum();
        let wanted = (cpus * LOAD).div_ceil(LOAD + SERVER + micros).min(cpus.div_ceil(2));
        let mut load: Vec<usize> = Vec::new();
        while load.len() < wanted && server.len() > 1 {
            load.extend(server.pop().into_iter().flatten());
        }
        load.sort_unstable();
        let threads = server.iter().map(Vec::len).max().unwrap_or(0);
        let nth = |n: usize| server.iter().filter_map(move |core| core.get(n).copied());
        let server: Vec<usize> = (0..threads).flat_map(nth).collect();
        if load.is_empty() {
            load.clone_from(&server);
        }
        Division { server, load }
    }

    /// Returns the same division for a server with so many workers, which have a CPU each or share all of the
    /// server's.
    pub(crate) fn with_workers(&self, workers: usize) -> Division {
        Division { server: self.server.iter().copied().take(workers).collect(), load: self.load.clone() }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "server_cpus": self.server, "load_cpus": self.load })
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.server.is_empty() {
            return f.write_str("server and load on all CPUs together");
        }
        write!(f, "server on CPUs {}, load on {}", ranges(&self.server), ranges(&self.load))
    }
}

/// Returns the CPUs that this process may use, one list for each core.
pub(crate) fn cores() -> io::Result<Vec<Vec<usize>>> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let siblings = |cpu: &usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        // On a system that does not tell, each CPU counts as a core.
        fs::read_to_string(path).unwrap_or_else(|_| cpu.to_string())
    };
    Ok(grouped(&cpus, siblings))
}

/// Groups CPUs with equal keys, in the order of their first CPU.
fn grouped(cpus: &[usize], key: impl Fn(&usize) -> String) -> Vec<Vec<usize>> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for cpu in cpus {
        let key = key(cpu);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(*cpu),
            None => groups.push((key, vec![*cpu])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Confines a command to these CPUs. An empty list leaves it as it is.
pub(crate) fn confine(command: &mut Command, cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    let set = set_of(cpus);
    // SAFETY: between fork and exec this makes one system call; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &set)?)) };
}

/// Returns the set of these CPUs.
pub(crate) fn set_of(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    set
}

/// Returns `0-3, 8` for 0, 1, 2, 3, 8, in any order.
pub(crate) fn ranges(cpus: &[usize]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|one, next| one + 1 == *next);
    let text = |run: &[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::procfs;
    use std::time::Duration;

    fn plain(count: usize) -> Vec<Vec<usize>> {
        (0..count).map(|cpu| vec![cpu]).collect()
    }

    #[test]
    fn the_more_work_the_fewer_cpus_for_the_load() {
        let load = |cpus, micros| Division::of(&plain(cpus), micros).load.len();
        assert_eq!([0, 5, 20, 100].map(|micros| load(16, micros)), [8, 8, 4, 2]);
        assert_eq!([0, 5, 20, 100].map(|micros| load(4, micros)), [2, 2, 1, 1]);
        assert_eq!([0, 5, 20, 100].map(|micros| load(2, micros)), [1, 1, 1, 1]);
    }

    #[test]
    fn server_and_load_share_a_cpu_only_if_there_is_one() {
        for cpus in 2..70 {
            for micros in [0, 5, 20, 100] {
                let Division { server, load } = Division::of(&plain(cpus), micros);
                assert!(!server.is_empty() && !load.is_empty());
                assert_eq!([server, load].concat(), (0..cpus).collect::<Vec<_>>());
            }
        }
        let alone = Division::of(&plain(1), 0);
        assert_eq!((alone.server, alone.load), (vec![0], vec![0]));
        assert_eq!(Division::of(&[], 0), Division::default());
    }

    /// Eight cores with two hardware threads each, numbered as Linux does it on most machines.
    #[test]
    fn no_core_has_a_thread_on_both_sides() {
        let cores: Vec<_> = (0..8).map(|core| vec![core, core + 8]).collect();
        let division = Division::of(&cores, 0);
        assert_eq!(division.server, [0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(division.load, [4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(division.with_workers(2).to_string(), "server on CPUs 0-1, load on 4-7, 12-15");
        // The threads of a single core are divided.
        assert_eq!(Division::of(&[vec![0, 1]], 0).to_string(), "server on CPUs 0, load on 1");
    }

    #[test]
    fn cpus_of_one_core_are_grouped() {
        assert_eq!(grouped(&[0, 1, 2, 3], |cpu| (cpu % 2).to_string()), [[0, 2], [1, 3]]);
        assert!(!cores().unwrap().is_empty());
    }

    #[test]
    fn a_confined_child_runs_where_it_should() {
        let last = *cores().unwrap().last().unwrap().last().unwrap();
        let mut command = Command::new("sleep");
        confine(command.arg("10"), &[last]);
        let mut child = command.spawn().unwrap();
        let path = format!("/proc/{}/status", child.id());
        let wanted = format!("Cpus_allowed_list:\t{last}\n");
        let is_confined = || fs::read_to_string(&path).is_ok_and(|status| status.contains(&wanted));
        let found = procfs::eventually(Duration::from_secs(5), is_confined);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
    }
}
