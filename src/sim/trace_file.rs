//! [`TraceFile`]: the trace of a simulation, in a file.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use crate::runtime::Handle;
use crate::trace::{FlightRecorder, Recorder};

/// A recorder of the simulation on this thread. Its drop writes the trace, also during a panic.
pub(super) struct TraceFile {
    path: PathBuf,
    recorder: Recorder,
}

impl TraceFile {
    pub(super) fn begin(path: PathBuf) -> Self {
        // By size alone: a virtual hour may have few events.
        let recorder = FlightRecorder::new().min_age(Duration::MAX).start_on(&Handle::current());
        Self { path, recorder }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        let trace = self.recorder.snapshot();
        let written = File::create(&self.path).and_then(|file| trace.write_perfetto(BufWriter::new(file)));
        if let Err(error) = written {
            eprintln!("the trace of the simulation cannot be written to {}: {error}", self.path.display());
        }
    }
}
