use std::sync::mpsc;

use async_task::Runnable;

use super::*;

/// The second of the thread is over, and another thread has taken its seat off the list, but has not called
/// it yet.
#[test]
fn a_thread_that_is_called_as_it_is_about_to_end_stays() {
    let threads = Arc::new(Threads::new(1, None));
    sync::lock(&threads.inner).threads = 1;
    let (tell, told) = mpsc::channel();
    let waits = threads.clone();
    let waiter = thread::spawn(move || {
        let seat = Arc::new(IdleSeat { thread: thread::current(), called: Flag::new(false) });
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
    assert!(told.recv().expect("it returns"));
    waiter.join().expect("it does not panic");
    assert_eq!((threads.figures().threads, sync::lock(&threads.inner).coming), (1, 1));
}

/// One thread at a time.
#[test]
fn threads_are_brought_one_at_a_time_up_to_the_limit() {
    let threads = Threads::new(2, None);
    let mut inner = sync::lock(&threads.inner);
    assert!(inner.successor_if_needed().is_none(), "nothing waits");
    inner.queue.push_back(Work::Task(idle_task(), None, None));
    assert!(matches!(inner.successor_if_needed(), Some(Successor::Start(1))));
    assert!(inner.successor_if_needed().is_none(), "a thread is on its way");
    inner.coming = 0;
    assert!(matches!(inner.successor_if_needed(), Some(Successor::Start(2))));
    inner.coming = 0;
    assert!(inner.successor_if_needed().is_none(), "there may be no more");
}

/// Fails if the queue keeps the size that it had at a peak.
#[test]
fn a_thread_without_work_leaves_room_for_a_few_pieces() {
    let threads = Arc::new(Threads::new(1, None));
    let mut inner = sync::lock(&threads.inner);
    (0..10 * ROOM).for_each(|_| inner.queue.push_back(Work::Task(idle_task(), None, None)));
    (inner.threads, inner.coming, inner.limit) = (1, 1, 1);
    drop(inner);
    assert!(!threads.serve(thread::current().id()));
    assert!(sync::lock(&threads.inner).queue.capacity() >= 10 * ROOM);
    let seat = IdleSeat { thread: thread::current(), called: Flag::new(true) };
    threads.wait(&Arc::new(seat));
    assert!(sync::lock(&threads.inner).queue.capacity() <= ROOM);
}

fn idle_task() -> Runnable {
    let (task, handle) = async_task::spawn(async {}, |_| ());
    handle.detach();
    task
}
