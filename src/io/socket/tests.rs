//! Sockets on the loopback: what arrives, and what does not hurt.

use super::*;
use crate::base::limits::MAX_DATAGRAM;
use crate::io::datagrams::RECEIVES_PER_TURN;
use crate::io::fault::Fault;
use crate::io::poll::Waiter;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const NOW: Instant = Instant::from_millis(60_000);

#[test]
fn two_sockets_exchange_over_ipv4_and_over_ipv6() {
    let (mut a, mut b) = (Socks::open(BindConfig::default()), Socks::open(BindConfig::default()));
    for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if host.is_ipv6() && !has_ipv6() {
            continue;
        }
        a.sockets.send(Addr::ip((host, b.local.port()).into()), b"there");
        let (from, bytes) = b.next();
        assert_eq!((from, bytes), (Addr::ip((host, a.local.port()).into()), b"there".to_vec()));
        b.sockets.send(from, b"and back");
        assert_eq!(a.next().1, b"and back");
    }
    assert_eq!(a.counters.sent.load(Relaxed), b.counters.received.load(Relaxed));
}

#[test]
fn both_families_listen_on_one_port_number() {
    let socks = Socks::open(BindConfig::default());
    let ports: Vec<_> = [socks.local.v4, socks.local.v6].into_iter().flatten().map(|a| a.port()).collect();
    assert!(ports.iter().all(|port| *port == socks.local.port() && *port != 0));
}

#[test]
fn a_bound_address_limits_the_families() {
    let v4 = BindConfig { port: 0, address: Some(Ipv4Addr::LOCALHOST.into()) };
    let local = Bound::bind(v4).expect("the loopback exists").local_addrs();
    assert!(local.v6.is_none() && local.v4.is_some_and(|addr| addr.ip().is_loopback()));
    if has_ipv6() {
        let v6 = BindConfig { port: 0, address: Some(Ipv6Addr::LOCALHOST.into()) };
        let local = Bound::bind(v6).expect("the loopback exists").local_addrs();
        assert!(local.v4.is_none() && local.v6.is_some_and(|addr| addr.ip().is_loopback()));
    }
}

#[test]
fn a_machine_without_one_family_uses_the_other() {
    let without = |lacks_v4, lacks_v6| {
        Bound::bind_any(0, move |address| {
            let lacks = if address.is_ipv4() { lacks_v4 } else { lacks_v6 };
            if lacks { Err(ErrorKind::Unsupported.into()) } else { open(address) }
        })
    };
    let v4_only = without(false, true).expect("IPv4 is enough").local_addrs();
    assert!(v4_only.v4.is_some() && v4_only.v6.is_none());
    if has_ipv6() {
        let v6_only = without(true, false).expect("IPv6 is enough").local_addrs();
        assert!(v6_only.v6.is_some() && v6_only.v4.is_none());
        assert_ne!(v6_only.port(), 0);
    }
    assert!(without(true, true).is_err());
}

#[test]
fn a_port_number_that_is_free_for_one_family_only_is_not_taken_when_any_will_do() {
    let taken = std::cell::Cell::new(3);
    let bound = Bound::bind_any(0, |address| {
        if address.is_ipv6() && taken.get() > 0 {
            taken.set(taken.get() - 1);
            return Err(ErrorKind::AddrInUse.into());
        }
        open(address)
    });
    assert_eq!((bound.is_ok(), taken.get()), (true, 0));
    let never = |address: SocketAddr| {
        if address.is_ipv6() { Err(ErrorKind::AddrInUse.into()) } else { open(address) }
    };
    assert!(Bound::bind_any(0, never).expect("IPv4 is enough").local_addrs().v6.is_none());
}

#[test]
fn an_error_says_what_to_do() {
    let taken = Socks::open(BindConfig::default());
    let again = Bound::bind(BindConfig { port: taken.local.port(), address: None });
    let message = again.err().expect("the port is taken").message;
    assert!(message.contains("choose another bind_port"), "{message}");
    // TEST-NET-1 is nobody's address.
    let foreign = BindConfig { port: 0, address: Some(Ipv4Addr::new(192, 0, 2, 1).into()) };
    let message = Bound::bind(foreign).err().expect("not ours").message;
    assert!(message.contains("bind_address is not an address of this machine"), "{message}");
}

#[test]
fn empty_and_oversized_datagrams_are_dropped_and_the_next_one_arrives() {
    let mut socks = Socks::open(BindConfig::default());
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, socks.local.port()));
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback exists");
    let longest = vec![7; MAX_DATAGRAM];
    for bytes in [&[][..], &vec![1; 65_507], &vec![2; MAX_DATAGRAM + 1], &longest] {
        assert_eq!(stranger.send_to(bytes, to).expect("the loopback takes it"), bytes.len());
    }
    assert_eq!(socks.next().1, longest);
    assert_eq!(socks.counters.oversized.load(Relaxed), 2);
    assert_eq!(socks.counters.empty.load(Relaxed), 1);
    assert_eq!(socks.counters.received.load(Relaxed), 1);
}

#[test]
fn port_unreachable_is_an_error_of_one_datagram_only() {
    // A connected socket is told of it on Linux, as every socket is on Windows.
    let ours = open((Ipv4Addr::LOCALHOST, 0).into()).expect("the loopback exists");
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback exists");
    let peer_at = peer.local_addr().expect("bound");
    ours.connect(peer_at).expect("the loopback exists");
    drop(peer);
    let mut socks = Socks::watch(Bound { v4: Some(ours), v6: None });
    for _ in 0..3 {
        // Every second of these is refused at once, by the error that the one before brought back.
        socks.sockets.send(Addr::ip(peer_at), b"to nobody");
    }
    let again = UdpSocket::bind(peer_at).expect("its port is free again");
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, socks.local.port()));
    again.send_to(b"alive", to).expect("the loopback takes it");
    assert_eq!(socks.next(), (Addr::ip(peer_at), b"alive".to_vec()));
    let errors = socks.counters.sent_again.load(Relaxed) + socks.counters.receive_errors.total();
    assert!(errors > 0, "the system told of no error, so nothing was tested");
    socks.sockets.send(Addr::ip(peer_at), b"to somebody");
    let mut buffer = [0; 64];
    again.set_read_timeout(Some(Duration::from_secs(20))).expect("not zero");
    assert_eq!(again.recv(&mut buffer).expect("it was sent"), b"to somebody".len());
}

#[test]
fn what_cannot_be_sent_is_counted_as_lost() {
    let mut socks = Socks::open(BindConfig { port: 0, address: Some(Ipv4Addr::LOCALHOST.into()) });
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    socks.sockets.send(Addr::ip(nowhere), &vec![0; 70_000]);
    socks.sockets.send(Addr::ip((Ipv6Addr::LOCALHOST, 9).into()), b"no socket of this family");
    socks.sockets.send(Addr::opaque(b"elsewhere").expect("short"), b"no address of ours");
    // From the loopback there is no way out.
    socks.sockets.send(Addr::ip((Ipv4Addr::new(192, 0, 2, 1), 9).into()), b"unreachable");
    assert_eq!(socks.counters.no_socket.load(Relaxed), 2);
    assert_eq!(socks.counters.send_failed.get(Fault::TooLong), 1);
    assert_eq!(socks.counters.send_failed.total(), 2);
    let ourselves = SocketAddr::from((Ipv4Addr::LOCALHOST, socks.local.port()));
    socks.sockets.send(Addr::ip(ourselves), b"still works");
    assert_eq!(socks.next().1, b"still works");
}

#[test]
fn a_flood_is_read_in_bounded_pieces() {
    let mut socks = Socks::open(BindConfig { port: 0, address: Some(Ipv4Addr::LOCALHOST.into()) });
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, socks.local.port()));
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback exists");
    for _ in 0..=RECEIVES_PER_TURN {
        stranger.send_to(b"x", to).expect("the loopback takes it");
    }
    socks.wait();
    let more = |socks: &mut Socks, count: &mut usize| {
        socks.sockets.receive(Ready::BOTH, NOW, &mut socks.buffer, |_, _| *count += 1) != Ready::NONE
    };
    let mut count = 0;
    assert!(more(&mut socks, &mut count), "more waits");
    assert_eq!(count, RECEIVES_PER_TURN);
    assert!(!more(&mut socks, &mut count), "nothing waits");
    assert_eq!(count, RECEIVES_PER_TURN + 1);
}

struct Socks {
    sockets: Sockets,
    waiter: Waiter,
    local: LocalAddrs,
    counters: Arc<Counters>,
    buffer: Box<Buffer>,
    received: Vec<(Addr, Vec<u8>)>,
}

impl Socks {
    fn open(config: BindConfig) -> Self {
        Self::watch(Bound::bind(config).expect("any port can be bound"))
    }

    fn watch(bound: Bound) -> Self {
        let waiter = Waiter::new().expect("the system has a poller");
        let (local, counters) = (bound.local_addrs(), Arc::new(Counters::default()));
        let sockets = bound.watch(&waiter.bell(), 3, Arc::clone(&counters)).expect("both can be watched");
        let buffer = Box::new([0; MAX_DATAGRAM + 1]);
        Self { sockets, waiter, local, counters, buffer, received: Vec::new() }
    }

    fn wait(&mut self) {
        self.waiter.wait(Some(Duration::from_secs(1))).expect("the poller works");
        assert!(self.waiter.readable().all(|key| Ready::of_key(key).0 == 3));
    }

    /// The next datagram; waits for it.
    fn next(&mut self) -> (Addr, Vec<u8>) {
        let started = std::time::Instant::now();
        while self.received.is_empty() {
            assert!(started.elapsed() < Duration::from_secs(20), "nothing arrives");
            self.wait();
            let ready = self.waiter.readable().fold(Ready::NONE, |all, key| all.and(Ready::of_key(key).1));
            let received = &mut self.received;
            self.sockets
                .receive(ready, NOW, &mut self.buffer, |from, bytes| received.push((from, bytes.to_vec())));
        }
        self.received.remove(0)
    }
}

fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}
