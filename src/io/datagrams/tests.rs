//! What is done about each fault, with a stand-in for the socket that fails as it is told to.

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::Ipv4Addr;

const NOW: Instant = Instant::from_millis(60_000);
const REFUSED: ErrorKind = ErrorKind::ConnectionRefused;

#[test]
fn what_the_system_cannot_take_now_is_lost_and_counted_and_the_next_one_goes() {
    let cases = [
        (ErrorKind::WouldBlock, Fault::NotNow),
        (ErrorKind::OutOfMemory, Fault::NoRoom),
        (ErrorKind::NetworkUnreachable, Fault::Unreachable),
        (ErrorKind::HostUnreachable, Fault::Unreachable),
        (ErrorKind::NetworkDown, Fault::Unreachable),
        (ErrorKind::PermissionDenied, Fault::Forbidden),
        (ErrorKind::BrokenPipe, Fault::Broken),
    ];
    for (kind, fault) in cases {
        let (socket, counters) = (Scripted::default(), Counters::default());
        socket.refuse([kind]);
        send(&socket, b"one", peer(), &counters);
        send(&socket, b"two", peer(), &counters);
        assert_eq!(socket.arrived(), ["two"], "{kind}");
        assert_eq!((counters.send_failed.get(fault), counters.send_failed.total()), (1, 1), "{kind}");
        assert_eq!(counters.sent.load(Relaxed), 1, "{kind}");
        assert_eq!(counters.sent_again.load(Relaxed), 0, "{kind}");
    }
}

#[test]
fn a_datagram_refused_for_an_earlier_one_or_for_how_it_was_sent_goes_at_the_second_try() {
    // EIO and EINVAL have no kind and one: what a driver says to segmentation that it does not do.
    for error in [REFUSED, ErrorKind::ConnectionReset, ErrorKind::InvalidInput, ErrorKind::Unsupported] {
        let (socket, counters) = (Scripted::default(), Counters::default());
        socket.refuse([error]);
        let words = ["a", "b", "c", "d"];
        for word in words {
            send(&socket, word.as_bytes(), peer(), &counters);
        }
        assert_eq!(socket.arrived(), words, "{error}: nothing is lost, doubled or out of order");
        assert_eq!(counters.sent_again.load(Relaxed), 1);
        assert_eq!(counters.send_failed.total(), 0);
    }
    #[cfg(unix)]
    {
        let (socket, counters) = (Scripted::default(), Counters::default());
        socket.send.borrow_mut().push_back(io::Error::from_raw_os_error(5));
        send(&socket, b"after EIO", peer(), &counters);
        assert_eq!(socket.arrived(), ["after EIO"]);
    }
}

#[test]
fn a_datagram_that_is_refused_twice_is_lost_and_holds_nobody_up() {
    let (socket, counters) = (Scripted::default(), Counters::default());
    socket.refuse([REFUSED, REFUSED]);
    send(&socket, b"to nobody", peer(), &counters);
    send(&socket, b"to somebody", peer(), &counters);
    assert_eq!(socket.arrived(), ["to somebody"]);
    assert_eq!(counters.send_failed.get(Fault::Refused), 1);
}

#[test]
fn interrupted_calls_are_made_again_but_not_for_ever() {
    let (mut socket, counters) = (Scripted::default(), Counters::default());
    socket.refuse([ErrorKind::Interrupted; INTERRUPTS as usize]);
    send(&socket, b"at last", peer(), &counters);
    assert_eq!(socket.arrived(), ["at last"]);
    socket.refuse([ErrorKind::Interrupted; INTERRUPTS as usize + 1]);
    send(&socket, b"never", peer(), &counters);
    assert_eq!(counters.send_failed.get(Fault::Interrupted), 1);
    let events = [Err(ErrorKind::Interrupted), Ok(3), Err(ErrorKind::Interrupted), Ok(4)];
    let (read, sizes) = socket.read(events, &counters, &mut Reader::default());
    assert_eq!((read, sizes), (Read::Empty, vec![3, 4]));
}

#[test]
fn no_error_while_receiving_hides_the_next_datagram() {
    let kinds = [
        (REFUSED, Fault::Refused),
        (ErrorKind::ConnectionReset, Fault::Refused),
        (ErrorKind::HostUnreachable, Fault::Unreachable),
        (ErrorKind::NetworkUnreachable, Fault::Unreachable),
        (ErrorKind::OutOfMemory, Fault::NoRoom),
        (ErrorKind::PermissionDenied, Fault::Forbidden),
        (ErrorKind::BrokenPipe, Fault::Broken),
    ];
    for (kind, fault) in kinds {
        let (mut socket, counters) = (Scripted::default(), Counters::default());
        let events = [Ok(10), Err(kind), Err(kind), Ok(11)];
        let (read, sizes) = socket.read(events, &counters, &mut Reader::default());
        assert_eq!((read, sizes), (Read::Empty, vec![10, 11]), "{kind}");
        assert_eq!(counters.receive_errors.get(fault), 2, "{kind}");
        assert_eq!(counters.pauses.load(Relaxed), 0, "{kind}");
    }
}

#[test]
fn datagrams_of_a_size_that_is_none_of_ours_are_counted_and_dropped() {
    let (mut socket, counters) = (Scripted::default(), Counters::default());
    let events = [Ok(0), Ok(MAX_DATAGRAM + 1), Ok(MAX_DATAGRAM), Ok(1)];
    let (read, sizes) = socket.read(events, &counters, &mut Reader::default());
    assert_eq!((read, sizes), (Read::Empty, vec![MAX_DATAGRAM, 1]));
    // As Windows tells of one that did not fit, and as Linux does of one of ours.
    let code = if cfg!(windows) {
        10040
    } else if cfg!(target_vendor = "apple") {
        40
    } else {
        90
    };
    socket.receive.borrow_mut().extend([Err(io::Error::from_raw_os_error(code)), Ok(5)]);
    let (read, sizes) = socket.read([], &counters, &mut Reader::default());
    assert_eq!((read, sizes), (Read::Empty, vec![5]));
    assert_eq!((counters.empty.load(Relaxed), counters.oversized.load(Relaxed)), (1, 2));
}

#[test]
fn a_socket_that_yields_nothing_but_errors_is_left_alone_for_longer_and_longer() {
    let (mut socket, counters, mut reader) = (Scripted::default(), Counters::default(), Reader::default());
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let events = [Err(ErrorKind::BrokenPipe); RECEIVES_PER_TURN];
        let (Read::Pause(until), _) = socket.read(events, &counters, &mut reader) else {
            panic!("it pauses")
        };
        pauses.push(until.since(NOW).as_millis());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
    assert_eq!(counters.pauses.load(Relaxed), 10);
    // It works again, and the next trouble begins with a short pause.
    assert_eq!(socket.read([Ok(7)], &counters, &mut reader), (Read::Empty, vec![7]));
    let events = [Err(ErrorKind::BrokenPipe); RECEIVES_PER_TURN];
    assert_eq!(socket.read(events, &counters, &mut reader).0, Read::Pause(NOW + *PAUSES.start()));
}

#[test]
fn a_flood_of_errors_with_one_datagram_in_it_is_no_reason_for_a_pause() {
    let (mut socket, counters) = (Scripted::default(), Counters::default());
    let mut events = [Err(REFUSED); RECEIVES_PER_TURN];
    events[40] = Ok(9);
    let (read, sizes) = socket.read(events, &counters, &mut Reader::default());
    assert_eq!((read, sizes), (Read::More, vec![9]));
}

/// Fails as told, and works once it has been told nothing more.
#[derive(Default)]
struct Scripted {
    send: RefCell<VecDeque<io::Error>>,
    arrived: RefCell<Vec<String>>,
    receive: RefCell<VecDeque<io::Result<usize>>>,
}

impl Scripted {
    fn refuse(&self, kinds: impl IntoIterator<Item = ErrorKind>) {
        self.send.borrow_mut().extend(kinds.into_iter().map(io::Error::from));
    }

    fn arrived(&self) -> Vec<String> {
        self.arrived.borrow().clone()
    }

    /// Reads once; what comes, and the sizes of what was delivered.
    fn read(
        &mut self,
        events: impl IntoIterator<Item = Result<usize, ErrorKind>>,
        counters: &Counters,
        reader: &mut Reader,
    ) -> (Read, Vec<usize>) {
        self.receive.borrow_mut().extend(events.into_iter().map(|event| event.map_err(io::Error::from)));
        let mut sizes = Vec::new();
        let mut deliver = |from: Addr, bytes: &mut [u8]| {
            assert_eq!(from, Addr::ip(peer()));
            sizes.push(bytes.len());
        };
        let read = reader.read(self, NOW, &mut [0; MAX_DATAGRAM + 1], counters, &mut deliver);
        (read, sizes)
    }
}

impl Datagrams for Scripted {
    fn receive(&self, _: &mut Buffer) -> io::Result<(usize, SocketAddr)> {
        let event = self.receive.borrow_mut().pop_front();
        event.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into())).map(|size| (size, peer()))
    }

    fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        assert_eq!(to, peer());
        if let Some(error) = self.send.borrow_mut().pop_front() {
            return Err(error);
        }
        self.arrived.borrow_mut().push(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }
}

fn peer() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 7).into()
}
