use std::sync::mpsc;

use async_task::Runnable;

use super::*;

/// Its second is over, and somebody has taken it off the list, who has not come to call it yet.
#[test]
fn l13_who_was_called_as_it_was_about_to_go_stays() {
    let threads = Arc::new(Threads::new(1, None));
    sync::lock(&threads.inner).threads = 1;
    let (tell, told) = mpsc::channel();
    let waits = threads.clone();
    let waiter = thread::spawn(move || {
        let seat = Arc::new(Seat { thread: thread::current(), called: Flag::new(false) });
        tell.send(waits.wait(&seat)).expect("the test listens");
    });
    let seat = loop {
        match sync::lock(&threads.inner).successor() {
            Some(Successor::Call(seat)) => break seat,
            Some(Successor::Start(number)) => panic!("there is one already, and {number} is started"),
            None => thread::yield_now(),
        }
    };
    let early = told.recv_timeout(LINGER + Duration::from_millis(200));
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "it did not wait for the call");
    seat.call();
    assert!(told.recv().expect("it comes back"));
    waiter.join().expect("it does not panic");
    assert_eq!((threads.figures().threads, sync::lock(&threads.inner).coming), (1, 1));
}

/// One at a time, where something gets done meanwhile; several at once, where nothing does.
#[test]
fn as_many_come_as_are_wanted() {
    let threads = Threads::new(2, None);
    let mut inner = sync::lock(&threads.inner);
    assert!(inner.successor_if_needed().is_none(), "nothing waits");
    inner.queue.push_back(Work::Task(idle_task(), None, None));
    assert!(matches!(inner.successor_if_needed(), Some(Successor::Start(1))));
    assert!(inner.successor_if_needed().is_none(), "somebody comes");
    inner.coming = 0;
    assert!(matches!(inner.successor_if_needed(), Some(Successor::Start(2))));
    inner.coming = 0;
    assert!(inner.successor_if_needed().is_none(), "there may be no more");
}

fn idle_task() -> Runnable {
    let (task, handle) = async_task::spawn(async {}, |_| ());
    handle.detach();
    task
}
