//! Real nodes on the driver, in each of its three modes: a guest joins by address, and a message travels.

use super::*;
use crate::base::{Addr, Instant, PeerIndex};
use crate::bridge::{Command, Delivery, MeshNews, MeshPort};
use crate::config::{MeshConfig, RoomKey, ValidMeshConfig};
use crate::netem::Link;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Longer than any test may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn meshes_on_the_thread_meet_over_ipv4() {
    let _process = PROCESS.lock();
    threaded_meshes_meet(Ipv4Addr::LOCALHOST.into(), None);
}

#[test]
fn meshes_on_the_thread_meet_over_ipv6() {
    let _process = PROCESS.lock();
    if std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        threaded_meshes_meet(Ipv6Addr::LOCALHOST.into(), None);
    }
}

#[test]
fn meshes_on_the_thread_meet_over_a_bad_link() {
    let _process = PROCESS.lock();
    let ms = Duration::from_millis;
    let link =
        Link { latency: ms(5), jitter: ms(10), loss_ppm: 200_000, duplicate_ppm: 50_000, ..Link::default() };
    threaded_meshes_meet(Ipv4Addr::LOCALHOST.into(), Some(link));
}

#[test]
fn shutdown_ends_real_meshes_and_the_next_ones_work() {
    let _process = PROCESS.lock();
    for _ in 0..3 {
        let mesh = open_threaded(config(), BindConfig::default()).expect("any port can be bound");
        assert_eq!(thread_count_for_tests(), 1);
        shutdown();
        assert_eq!(thread_count_for_tests(), 0);
        assert!(mesh.port.send(Command::Host).is_err());
        shutdown();
    }
    threaded_meshes_meet(Ipv4Addr::LOCALHOST.into(), None);
}

#[test]
fn opening_and_closing_fifty_real_meshes_leaves_no_thread() {
    let _process = PROCESS.lock();
    for _ in 0..50 {
        let mesh = open_threaded(config(), BindConfig::default()).expect("any port can be bound");
        mesh.port.send(Command::Host).expect("it is alive");
    }
    shutdown();
    assert_eq!(thread_count_for_tests(), 0);
}

#[test]
fn meshes_without_a_thread_meet() {
    let open = || open_manual(config(), BindConfig::default()).expect("any port can be bound");
    let mut both = [open(), open()];
    let turn =
        |both: &mut [ManualMesh; 2]| both.iter_mut().for_each(|mesh| mesh.turn(Duration::from_millis(1)));
    both[0].port.send(Command::Host).expect("it is alive");
    let room = wait_for(&mut both, |both| {
        turn(both);
        room_of(&both[0].port)
    });
    let address = Addr::ip((Ipv4Addr::LOCALHOST, both[0].local_addrs().port()).into());
    both[1].port.send(Command::Join { address, room }).expect("it is alive");
    wait_for(&mut both, |both| {
        turn(both);
        connected(&both[0].port)
    });
    both[1].port.send(Command::Leave).expect("it is alive");
    wait_for(&mut both, |both| {
        turn(both);
        (!both[1].is_open()).then_some(())
    });
    wait_for(&mut both, |both| {
        turn(both);
        matches!(both[0].port.next_news()?, MeshNews::Left { .. }).then_some(())
    });
}

#[test]
fn meshes_on_a_custom_transport_meet() {
    let names = [&b"host's mailbox"[..], b"guest's mailbox"].map(|name| Addr::opaque(name).expect("short"));
    let mut meshes = names.map(|name| {
        let config = ValidMeshConfig { local_address: Some(name), ..config() };
        CustomMesh::open(config).expect("no socket is needed")
    });
    let mut now = Instant::from_millis(1000);
    let mut carry = |meshes: &mut [CustomMesh; 2]| {
        now += Duration::from_millis(1);
        for mesh in meshes.iter_mut() {
            mesh.run(now);
        }
        for from in 0..2 {
            let [a, b] = &mut *meshes;
            let (sender, receiver) = if from == 0 { (a, b) } else { (b, a) };
            while let Some((to, bytes)) = sender.next_outgoing() {
                assert_eq!(to, names[1 - from]);
                receiver.receive(names[from], bytes, now);
            }
        }
    };
    meshes[0].port.send(Command::Host).expect("it is alive");
    carry(&mut meshes);
    let room = room_of(&meshes[0].port).expect("it hosts at once");
    meshes[1].port.send(Command::Join { address: names[0], room }).expect("it is alive");
    let met = (0..1000).any(|_| {
        carry(&mut meshes);
        connected(&meshes[0].port).is_some()
    });
    assert!(met, "a second of virtual time is enough");
}

#[test]
fn two_seconds_without_a_network_are_loss_and_nothing_else() {
    let places = [1, 2].map(|port| SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), port)));
    let mut meshes = places.map(|place| {
        let config = ValidMeshConfig { local_address: Some(Addr::ip(place)), ..config() };
        CustomMesh::open(config).expect("no socket is needed")
    });
    let counters = Counters::default();
    let mut now = Instant::from_millis(1000);
    let mut carry = |meshes: &mut [CustomMesh; 2], network: io::Result<()>| {
        now += Duration::from_millis(1);
        for mesh in meshes.iter_mut() {
            mesh.run(now);
        }
        for (from, place) in places.into_iter().enumerate() {
            let [a, b] = &mut *meshes;
            let (sender, receiver) = if from == 0 { (a, b) } else { (b, a) };
            while let Some((to, bytes)) = sender.next_outgoing() {
                let Addr::Ip(to) = to else { panic!("all addresses here are IP") };
                let wire =
                    Wire { error: network.as_ref().err().map(io::Error::kind), sent: Cell::new(false) };
                datagrams::send(&wire, bytes, to, &counters);
                if wire.sent.get() {
                    receiver.receive(Addr::ip(place), bytes, now);
                }
            }
        }
    };
    meshes[0].port.send(Command::Host).expect("it is alive");
    carry(&mut meshes, Ok(()));
    let room = room_of(&meshes[0].port).expect("it hosts at once");
    meshes[1].port.send(Command::Join { address: Addr::ip(places[0]), room }).expect("it is alive");
    let met = (0..1000).any(|_| {
        carry(&mut meshes, Ok(()));
        connected(&meshes[0].port).is_some()
    });
    assert!(met, "a second of virtual time is enough");
    let say = |mesh: &CustomMesh, data: &[u8]| {
        let command =
            Command::Send { to: None, stream: 0, delivery: Delivery::Reliable, data: data.to_vec() };
        mesh.port.send(command).expect("it is alive");
    };
    for half in [ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable] {
        say(&meshes[0], b"said in the tunnel");
        (0..1000).for_each(|_| carry(&mut meshes, Err(half.into())));
    }
    assert!(counters.send_failed.get(Fault::Unreachable) > 40, "both went on trying");
    let (mut heard, mut told) = (0, Vec::new());
    for _ in 0..2000 {
        carry(&mut meshes, Ok(()));
        for mesh in &meshes {
            told.extend(std::iter::from_fn(|| mesh.port.next_news()));
        }
        heard += told.iter().filter(|news| matches!(news, MeshNews::Message { .. })).count();
        assert!(!told.drain(..).any(|news| matches!(news, MeshNews::Left { .. })), "nobody is given up");
    }
    assert_eq!(heard, 2);
    assert_eq!(counters.send_failed.total(), counters.send_failed.get(Fault::Unreachable));
}

/// A socket for one datagram.
struct Wire {
    error: Option<ErrorKind>,
    sent: Cell<bool>,
}

impl datagrams::Datagrams for Wire {
    fn receive(&self, _: &mut datagrams::Buffer) -> io::Result<(usize, SocketAddr)> {
        Err(ErrorKind::WouldBlock.into())
    }

    fn send(&self, bytes: &[u8], _: SocketAddr) -> io::Result<usize> {
        self.error.map_or_else(
            || {
                self.sent.set(true);
                Ok(bytes.len())
            },
            |kind| Err(kind.into()),
        )
    }
}

/// `shutdown` ends all meshes of the process.
static PROCESS: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

fn threaded_meshes_meet(ip: IpAddr, link: Option<Link>) {
    let open = || open_threaded(config(), BindConfig::default()).expect("any port can be bound");
    let (host, guest) = (open(), open());
    if let Some(link) = link {
        host.handle.set_conditioner(link, 1);
        guest.handle.set_conditioner(link, 2);
    }
    host.port.send(Command::Host).expect("it is alive");
    let room = wait_for(&mut (), |()| room_of(&host.port));
    let address = Addr::ip(SocketAddr::new(ip, host.handle.local_addrs().port()));
    guest.port.send(Command::Join { address, room }).expect("it is alive");
    let peer = wait_for(&mut (), |()| connected(&host.port));
    wait_for(&mut (), |()| room_of(&guest.port));
    let data = host.port.buffer(b"welcome");
    let delivery = Delivery::Reliable;
    host.port.send(Command::Send { to: Some(peer), stream: 3, delivery, data }).expect("it is alive");
    let message = wait_for(&mut (), |()| match guest.port.next_news()? {
        MeshNews::Message { stream: 3, data, .. } => Some(data),
        _ => None,
    });
    assert_eq!(message, b"welcome");
}

fn config() -> ValidMeshConfig {
    MeshConfig::default().try_into().expect("the default makes sense")
}

/// The next news, if they are that the host is in its room.
fn room_of(port: &MeshPort) -> Option<RoomKey> {
    std::iter::from_fn(|| port.next_news())
        .find_map(|news| if let MeshNews::Joined { room, .. } = news { Some(room) } else { None })
}

/// The next news, if they are that another is connected.
fn connected(host: &MeshPort) -> Option<PeerIndex> {
    match host.next_news()? {
        MeshNews::PeerConnected { peer, .. } => Some(peer),
        _ => None,
    }
}

/// News are polled, as a game does; here without a frame between.
fn wait_for<S: ?Sized, T>(subject: &mut S, mut look: impl FnMut(&mut S) -> Option<T>) -> T {
    let started = now();
    loop {
        if let Some(found) = look(subject) {
            return found;
        }
        assert!(now().since(started) < PATIENCE, "what was waited for did not come");
        std::thread::yield_now();
    }
}
