//! The commands. None of them waits, so a client's commands are answered one after the other without an
//! `await`.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use crate::channels::{MAX_NAME, MAX_NAMES, Subscription};
use crate::connection::Client;
use crate::reply;
use crate::resp::{Command, number};

/// Runs a command and appends its reply to `out`. Returns `Break` for the last command.
pub fn run(client: &mut Client, command: Command<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
    let mut name = [0; 16];
    let name = name.get_mut(..command[0].len()).unwrap_or_default();
    name.copy_from_slice(&command[0][..name.len()]);
    name.make_ascii_uppercase();
    if client.subscription.is_some() && !matches!(&*name, b"SUBSCRIBE" | b"UNSUBSCRIBE" | b"PING" | b"QUIT") {
        let allowed =
            "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
        reply::error(out, format_args!("ERR Can't execute '{}': {allowed}", lower(&command)));
        return Continue(());
    }
    let keys = || client.shared.store.lock();
    match (&*name, command.len()) {
        (b"GET", 2) => match keys().get(&command[1]) {
            Some(value) => reply::bulk(out, value),
            None => reply::null(out),
        },
        (b"SET", 3..) => set(client, command, out),
        (b"INCR", 2) => match keys().increment(&command[1]) {
            Ok(number) => reply::integer(out, number),
            Err(error) => reply::error(out, error),
        },
        (b"DEL", 2..) => {
            let mut keys = keys();
            reply::integer(out, command.from(1).filter(|key| keys.remove(key)).count() as i64);
        }
        (b"EXISTS", 2..) => {
            let keys = keys();
            reply::integer(out, command.from(1).filter(|key| keys.get(key).is_some()).count() as i64);
        }
        (b"EXPIRE", 3) => match number(&command[2]) {
            Some(seconds @ 1..) => {
                reply::integer(out, keys().expire(&command[1], Duration::from_secs(seconds as u64)).into());
            }
            Some(_) => reply::integer(out, keys().remove(&command[1]).into()),
            None => reply::error(out, "ERR value is not an integer or out of range"),
        },
        (b"TTL", 2) => reply::integer(
            out,
            match keys().time_left(&command[1]) {
                None => -2,
                Some(None) => -1,
                Some(Some(left)) => (left + Duration::from_millis(500)).as_secs() as i64,
            },
        ),
        (b"PUBLISH", 3) => {
            reply::integer(out, client.shared.channels.publish(&command[1], &command[2]) as i64);
        }
        (b"SUBSCRIBE", 2..) => subscribe(client, command, out),
        (b"UNSUBSCRIBE", _) => unsubscribe(client, command, out),
        (b"PING", 1 | 2) if client.subscription.is_some() => {
            reply::array(out, 2);
            reply::bulk(out, b"pong");
            reply::bulk(out, command.from(1).next().unwrap_or_default());
        }
        (b"PING", 1) => reply::simple(out, "PONG"),
        (b"PING" | b"ECHO", 2) => reply::bulk(out, &command[1]),
        // Clients ask this at their start: no setting has a value, no command a description.
        (b"CONFIG", 3) if command[1].eq_ignore_ascii_case(b"GET") => {
            reply::array(out, 2);
            reply::bulk(out, &command[2]);
            reply::bulk(out, b"");
        }
        (b"COMMAND", _) => reply::array(out, 0),
        (b"QUIT", _) => {
            reply::simple(out, "OK");
            return Break(());
        }
        (
            b"GET" | b"SET" | b"INCR" | b"DEL" | b"EXISTS" | b"EXPIRE" | b"TTL" | b"PUBLISH" | b"SUBSCRIBE"
            | b"PING" | b"ECHO",
            _,
        ) => {
            reply::error(out, format_args!("ERR wrong number of arguments for '{}' command", lower(&command)))
        }
        _ => {
            let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(128)]).into_owned();
            let args: String = command.from(1).take(8).map(|arg| format!("'{}' ", shown(arg))).collect();
            let name = shown(&command[0]);
            reply::error(out, format_args!("ERR unknown command '{name}', with args beginning with: {args}"));
        }
    }
    Continue(())
}

fn set(client: &Client, command: Command<'_>, out: &mut Vec<u8>) {
    let (mut time, mut only_new) = (None, false);
    let mut options = command.from(3);
    while let Some(option) = options.next() {
        let unit: fn(u64) -> Duration = match &*option.to_ascii_uppercase() {
            b"NX" => {
                only_new = true;
                continue;
            }
            b"EX" if time.is_none() => Duration::from_secs,
            b"PX" if time.is_none() => Duration::from_millis,
            _ => return reply::error(out, "ERR syntax error"),
        };
        time = match options.next().map(number) {
            Some(Some(many @ 1..)) => Some(unit(many as u64)),
            Some(Some(_)) => return reply::error(out, "ERR invalid expire time in 'set' command"),
            Some(None) => return reply::error(out, "ERR value is not an integer or out of range"),
            None => return reply::error(out, "ERR syntax error"),
        };
    }
    let mut keys = client.shared.store.lock();
    if only_new && keys.get(&command[1]).is_some() {
        return reply::null(out);
    }
    keys.set(&command[1], &command[2], time);
    reply::simple(out, "OK");
}

fn subscribe(client: &mut Client, command: Command<'_>, out: &mut Vec<u8>) {
    let new = || Subscription::new(client.shared.channels.clone(), client.stream.clone());
    if let Err(error) = check_names(command) {
        return reply::error(out, error);
    }
    let subscription = client.subscription.get_or_insert_with(new);
    if !subscription.has_room(command.from(1)) {
        return reply::error(
            out,
            format_args!("ERR a connection subscribes to {MAX_NAMES} channels at most"),
        );
    }
    for name in command.from(1) {
        subscription.subscribe(name);
        put_change(out, b"subscribe", Some(name), subscription.len());
    }
}

/// Unsubscribes from all channels if the command names none.
fn unsubscribe(client: &mut Client, command: Command<'_>, out: &mut Vec<u8>) {
    if let Err(error) = check_names(command) {
        return reply::error(out, error);
    }
    let all = client.subscription.as_ref().filter(|_| command.len() == 1).map_or(vec![], Subscription::names);
    let names: Vec<&[u8]> = command.from(1).chain(all.iter().map(|name| &**name)).collect();
    let unsubscribe = |name| {
        client.subscription.as_mut().map_or(0, |subscription| {
            subscription.unsubscribe(name);
            subscription.len()
        })
    };
    let left: Vec<usize> = names.iter().copied().map(unsubscribe).collect();
    // Earlier messages come before the replies. This follows the last removal, so no message comes later.
    if let Some(subscription) = &client.subscription {
        subscription.put_all(out);
    }
    for (name, left) in names.iter().zip(left) {
        put_change(out, b"unsubscribe", Some(name), left);
    }
    if names.is_empty() {
        put_change(out, b"unsubscribe", None, 0);
    }
    client.subscription.take_if(|subscription| subscription.len() == 0);
}

/// Refuses a command with too many names, or too long ones.
fn check_names(command: Command<'_>) -> Result<(), String> {
    match command {
        _ if command.len() - 1 > MAX_NAMES => {
            Err(format!("ERR a command names {MAX_NAMES} channels at most"))
        }
        _ if command.from(1).any(|name| name.len() > MAX_NAME) => {
            Err(format!("ERR the name of a channel has {MAX_NAME} bytes at most"))
        }
        _ => Ok(()),
    }
}

fn put_change(out: &mut Vec<u8>, what: &[u8], name: Option<&[u8]>, left: usize) {
    reply::array(out, 3);
    reply::bulk(out, what);
    match name {
        Some(name) => reply::bulk(out, name),
        None => reply::null(out),
    }
    reply::integer(out, left as i64);
}

fn lower(command: &Command<'_>) -> String {
    String::from_utf8_lossy(&command[0]).to_lowercase()
}
