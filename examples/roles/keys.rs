//! The terminal: keys arrive one by one, without echo, until its settings are restored.

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use paceline::signal::{Signal, Signals};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::ride::Ride;

pub struct Terminal(Termios);

impl Terminal {
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut ours = before.clone();
        // Ctrl-C stays a signal.
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &ours)?;
        let this = Self(before);
        // The alternate screen, without a cursor.
        print!("\x1b[?1049h\x1b[?25l");
        io::stdout().flush()?;
        Ok(this)
    }

    pub fn width(&self) -> usize {
        tcgetwinsize(io::stdout()).map_or(80, |size| usize::from(size.ws_col).max(40))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal was closed meanwhile, nothing needs to be restored.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _ = write!(io::stdout(), "\x1b[?25h\x1b[?1049l");
        let _ = io::stdout().flush();
    }
}

/// Returns the keys as they are pressed; a signal that asks for the end is a `q`.
pub fn listen(ride: &Ride) -> Receiver<u8> {
    let (tell, told) = mpsc::channel();
    let tells = tell.clone();
    // Reads block, and this one until the process ends.
    thread::spawn(move || read(&tells));
    let signals =
        ride.outside.block_on(async { Signals::new([Signal::Interrupt, Signal::Terminate, Signal::Hangup]) });
    let ends = async move {
        // If signals cannot be awaited, they keep their default effect.
        let mut signals = signals?;
        signals.next().await?;
        _ = tell.send(b'q');
        io::Result::Ok(())
    };
    ride.outside.spawn(ends).detach();
    told
}

fn read(tells: &Sender<u8>) {
    for key in io::stdin().lock().bytes().map_while(Result::ok) {
        if tells.send(key).is_err() {
            return;
        }
    }
    // The terminal was closed.
    _ = tells.send(b'q');
}
