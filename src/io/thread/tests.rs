//! The IO thread with stand-in nodes on the loopback; each test has a runtime of its own.

use super::*;
use crate::bridge::{Command, Gone};
use crate::io::testing::{Ears, Heard, Parrot, be_stubborn, crash, echo, loopback, say, teach, tick};
use std::net::UdpSocket;

#[test]
fn two_meshes_talk_through_the_thread() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    echo(&b.port);
    teach(&a.port, b"hello");
    say(&a.port, at(&b));
    assert_eq!(b_hears.datagram().1, b"hello");
    assert_eq!(a_hears.datagram().1, b"hello");
    assert_eq!(runtime.threads.load(Ordering::Acquire), 1, "one thread serves both");
    assert_eq!(b.handle.counters().received.load(Ordering::Relaxed), 1);
}

#[test]
fn a_node_is_called_at_the_time_it_asked_for() {
    let (mesh, hears) = open(runtime());
    let before = clock::now();
    tick(&mesh.port, 30);
    let Heard::Tick(at) = hears.next() else { panic!("nothing else happens") };
    assert!(at.since(before) >= Duration::from_millis(30));
}

#[test]
fn a_closed_peer_does_not_stop_the_others() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    let nobody = UdpSocket::bind(loopback(0)).expect("the loopback exists").local_addr().expect("bound");
    echo(&b.port);
    for round in 0..20_u8 {
        teach(&a.port, &[round]);
        say(&a.port, nobody);
        say(&a.port, at(&b));
        assert_eq!(b_hears.datagram().1, [round]);
        assert_eq!(a_hears.datagram().1, [round]);
    }
}

#[test]
fn bad_datagrams_do_not_reach_the_node() {
    let (mesh, hears) = open(runtime());
    let stranger = UdpSocket::bind(loopback(0)).expect("the loopback exists");
    for bytes in [&[][..], &vec![9; 65_507], b"good"] {
        stranger.send_to(bytes, at(&mesh)).expect("the loopback takes it");
    }
    assert_eq!(hears.datagram().1, b"good");
}

#[test]
fn a_node_that_panics_ends_alone() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    echo(&b.port);
    crash(&a.port);
    assert_eq!(a_hears.next(), Heard::Dropped);
    assert!(a.port.send(Command::Host).is_err(), "its bridge is closed");
    let (c, c_hears) = open(runtime);
    say(&c.port, at(&b));
    assert_eq!(b_hears.datagram().1, b"hello");
    assert_eq!(c_hears.datagram().1, b"hello");
    drop(a);
    say(&c.port, at(&b));
    assert_eq!(c_hears.datagram().1, b"hello");
}

#[test]
fn a_mesh_that_leaves_says_goodbye_and_ends() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    say(&a.port, at(&b));
    a.port.send(Command::Leave).expect("it is alive");
    drop(a);
    assert_eq!(b_hears.datagram().1, b"hello");
    assert_eq!(b_hears.datagram().1, b"bye");
    assert_eq!(a_hears.next(), Heard::Dropped);
    assert!(b.port.send(Command::Host).is_ok());
}

#[test]
fn a_dropped_mesh_that_never_finishes_is_gone_soon() {
    let runtime = runtime();
    let ((a, a_hears), (_b, _)) = (open(runtime), open(runtime));
    be_stubborn(&a.port);
    let before = clock::now();
    drop(a);
    assert_eq!(a_hears.next(), Heard::Dropped);
    assert!(clock::now().since(before) >= Duration::from_millis(300), "it had its time");
}

#[test]
fn the_thread_is_gone_with_the_last_mesh_however_often() {
    let runtime = runtime();
    for _ in 0..50 {
        let (mesh, hears) = open(runtime);
        tick(&mesh.port, 0);
        assert!(matches!(hears.next(), Heard::Tick(_)));
        drop(mesh);
        assert_eq!(hears.next(), Heard::Dropped);
    }
    runtime.shutdown();
    assert_eq!(runtime.threads.load(Ordering::Acquire), 0);
    assert!(runtime.state.lock().ending.is_empty());
}

#[test]
fn shutdown_may_come_twice_and_everything_works_again() {
    let runtime = runtime();
    runtime.shutdown();
    for _ in 0..3 {
        let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
        say(&a.port, at(&b));
        assert_eq!(b_hears.datagram().1, b"hello");
        be_stubborn(&b.port);
        runtime.shutdown();
        assert_eq!(runtime.threads.load(Ordering::Acquire), 0);
        assert_eq!((a_hears.next(), b_hears.next()), (Heard::Dropped, Heard::Dropped));
        runtime.shutdown();
        assert!(a.port.send(Command::Host).is_err(), "the handle outlives its node");
        // Its thread is gone; a new one does not notice the old handles.
        let (c, c_hears) = open(runtime);
        drop((a, b));
        tick(&c.port, 0);
        assert!(matches!(c_hears.next(), Heard::Tick(_)));
    }
}

#[test]
fn shutdown_also_ends_a_thread_that_another_thread_is_closing() {
    let runtime = runtime();
    let (a, _ears) = open(runtime);
    be_stubborn(&a.port);
    thread::scope(|scope| {
        scope.spawn(move || drop(a));
        while runtime.state.lock().running.is_some() {
            thread::yield_now();
        }
        runtime.shutdown();
        assert_eq!(runtime.threads.load(Ordering::Acquire), 0);
    });
}

#[test]
fn a_conditioned_mesh_loses_and_delays_what_it_sends() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    a.handle.set_conditioner(Link { loss_ppm: 1_000_000, ..Link::default() }, 1);
    teach(&a.port, b"lost");
    say(&a.port, at(&b));
    tick(&a.port, 0);
    assert!(matches!(a_hears.next(), Heard::Tick(_)), "the command was looked at");
    let slow = Link { latency: Duration::from_millis(40), ..Link::default() };
    a.handle.set_conditioner(slow, 1);
    teach(&a.port, b"late");
    let before = clock::now();
    say(&a.port, at(&b));
    assert_eq!(b_hears.datagram().1, b"late");
    assert!(clock::now().since(before) >= Duration::from_millis(40));
}

#[test]
fn a_port_in_use_is_an_error_and_leaves_no_thread() {
    let runtime = runtime();
    let taken = UdpSocket::bind("0.0.0.0:0").expect("any port can be bound");
    let port = taken.local_addr().expect("bound").port();
    let error =
        runtime.open(BindConfig { port, address: None }, Parrot::nest().0).err().expect("it is taken");
    assert!(error.to_string().contains("another program uses it"), "{error}");
    let failing = |_| Err(OpenError { message: "no node today".into() });
    assert!(runtime.open(BindConfig::default(), failing).is_err());
    runtime.shutdown();
    assert_eq!(runtime.threads.load(Ordering::Acquire), 0);
}

#[test]
fn a_thread_that_failed_ends_its_meshes_and_the_next_one_gets_another() {
    let runtime = runtime();
    let ((a, a_hears), (b, b_hears)) = (open(runtime), open(runtime));
    assert!(a.handle.hub.tell(Control::Fail));
    assert_eq!((a_hears.next(), b_hears.next()), (Heard::Dropped, Heard::Dropped));
    assert_eq!((a.port.poll_news().err(), b.port.poll_news().err()), (Some(Gone), Some(Gone)));
    while !a.handle.hub.has_ended() {
        thread::yield_now();
    }
    // Handles of the dead thread may go before or after others came.
    drop(a);
    let ((c, c_hears), (d, d_hears)) = (open(runtime), open(runtime));
    drop(b);
    say(&c.port, at(&d));
    assert_eq!(d_hears.datagram().1, b"hello");
    drop((c, d));
    assert_eq!((c_hears.next(), d_hears.next()), (Heard::Dropped, Heard::Dropped));
    runtime.shutdown();
    assert_eq!(runtime.threads.load(Ordering::Acquire), 0);
}

#[test]
fn a_mesh_that_a_failing_thread_never_saw_ends_too() {
    let waiter = Waiter::new().expect("the system can wait");
    let hub = Hub::new(waiter.bell());
    let add = || {
        let (port, node_port) = bridge::open(Arc::new(|| {}));
        let bound = Bound::bind(BindConfig::default()).expect("any port can be bound");
        let sockets = bound.watch(&hub.bell, 0, Arc::default()).expect("it can be watched");
        let node = Parrot::nest().0(node_port).expect("it never refuses");
        (port, Control::Add(Box::new(Endpoint::new(0, node, sockets, Arc::default()))))
    };
    let (told, control) = add();
    assert!(hub.tell(control));
    assert!(told.poll_news().is_ok(), "it waits for the thread");
    hub.end();
    assert_eq!(told.poll_news().err(), Some(Gone));
    let (late, control) = add();
    assert!(!hub.tell(control), "nobody listens");
    assert_eq!(late.poll_news().err(), Some(Gone));
}

/// Tests run side by side, and `shutdown` ends everything of a runtime.
fn runtime() -> &'static Runtime {
    Box::leak(Box::new(Runtime::new()))
}

fn open(runtime: &'static Runtime) -> (ThreadedMesh, Ears) {
    let (make, ears) = Parrot::nest();
    (runtime.open(BindConfig::default(), make).expect("any port can be bound"), ears)
}

fn at(mesh: &ThreadedMesh) -> std::net::SocketAddr {
    loopback(mesh.handle.local_addrs().port())
}
