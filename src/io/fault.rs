//! Decides what an error of a socket means: which of a few kinds it is, on every system that we run on.
//!
//! Fed by: errors of the operating system, by their number. Yields: a [`Fault`], and counters of each.
//! Never: touches a socket; what is done about a fault is decided in `datagrams`.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an error of a UDP socket means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Nothing to read, or no room in the socket's own buffer: the ordinary end of a loop.
    NotNow,
    /// A signal came first; the call can be made again.
    Interrupted,
    /// The system has no buffer left (`ENOBUFS`, `ENOMEM`).
    NoRoom,
    /// No way to the destination now: net, host or interface down, or no address of ours that fits (air-plane mode).
    Unreachable,
    /// Nobody listens there. Mostly it is told of an earlier datagram than the one in hand.
    Refused,
    /// Longer than the path, the interface or our buffer takes.
    TooLong,
    /// A firewall says no.
    Forbidden,
    /// The system does not want it done this way (`EIO`, `EINVAL`, "not supported"): what a refused offload looks like.
    Odd,
    /// Anything else, such as a socket that the system took away.
    Broken,
}

impl Fault {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::NotNow,
        Self::Interrupted,
        Self::NoRoom,
        Self::Unreachable,
        Self::Refused,
        Self::TooLong,
        Self::Forbidden,
        Self::Odd,
        Self::Broken,
    ];

    /// What this error means.
    pub(super) fn of(error: &io::Error) -> Self {
        let by_number = error.raw_os_error().zip(System::HERE).and_then(|(code, system)| system.fault(code));
        by_number.unwrap_or_else(|| of_kind(error.kind()))
    }
}

/// How often each fault came.
#[derive(Debug, Default)]
pub struct FaultCounters([AtomicU64; Fault::ALL.len()]);

impl FaultCounters {
    pub(super) fn count(&self, fault: Fault) {
        self.0[fault as usize].fetch_add(1, Relaxed);
    }

    /// So often came this one.
    pub fn get(&self, fault: Fault) -> u64 {
        self.0[fault as usize].load(Relaxed)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|counter| counter.load(Relaxed)).sum()
    }
}

/// Families of systems that number their errors alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// Linux and Android, except on processors with numbers of their own.
    Linux,
    /// macOS, iOS and the BSDs.
    Bsd,
    /// Windows, its consoles too.
    Windows,
}

impl System {
    /// `None`: only what the standard library makes of an error is known.
    const HERE: Option<Self> = if cfg!(windows) {
        Some(Self::Windows)
    } else if cfg!(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "openbsd",
        target_os = "netbsd"
    )) {
        Some(Self::Bsd)
    } else if cfg!(all(
        any(target_os = "linux", target_os = "android"),
        not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64"))
    )) {
        Some(Self::Linux)
    } else {
        None
    };

    const fn fault(self, code: i32) -> Option<Fault> {
        match self {
            Self::Linux => linux(code),
            Self::Bsd => bsd(code),
            Self::Windows => windows(code),
        }
    }
}

const fn linux(code: i32) -> Option<Fault> {
    Some(match code {
        // EAGAIN
        11 => Fault::NotNow,
        // EINTR
        4 => Fault::Interrupted,
        // ENOMEM, ENOBUFS
        12 | 105 => Fault::NoRoom,
        // ENONET, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH
        64 | 99 | 100 | 101 | 110 | 112 | 113 => Fault::Unreachable,
        // ENOPROTOOPT (ICMP "protocol unreachable"), ENETRESET, ECONNABORTED, ECONNRESET, ECONNREFUSED
        92 | 102 | 103 | 104 | 111 => Fault::Refused,
        // EMSGSIZE
        90 => Fault::TooLong,
        // EPERM (netfilter), EACCES
        1 | 13 => Fault::Forbidden,
        // EIO, EINVAL, EOPNOTSUPP
        5 | 22 | 95 => Fault::Odd,
        _ => return None,
    })
}

const fn bsd(code: i32) -> Option<Fault> {
    Some(match code {
        // EAGAIN
        35 => Fault::NotNow,
        // EINTR
        4 => Fault::Interrupted,
        // ENOMEM, ENOBUFS
        12 | 55 => Fault::NoRoom,
        // EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH
        49 | 50 | 51 | 60 | 64 | 65 => Fault::Unreachable,
        // ENETRESET, ECONNABORTED, ECONNRESET, ECONNREFUSED
        52 | 53 | 54 | 61 => Fault::Refused,
        // EMSGSIZE
        40 => Fault::TooLong,
        // EPERM, EACCES
        1 | 13 => Fault::Forbidden,
        // EIO, EINVAL, EOPNOTSUPP (of the BSDs, of Apple)
        5 | 22 | 45 | 102 => Fault::Odd,
        _ => return None,
    })
}

const fn windows(code: i32) -> Option<Fault> {
    Some(match code {
        // WSAEWOULDBLOCK
        10035 => Fault::NotNow,
        // WSAEINTR
        10004 => Fault::Interrupted,
        // WSA_NOT_ENOUGH_MEMORY, WSAENOBUFS
        8 | 10055 => Fault::NoRoom,
        // ERROR_NETWORK_UNREACHABLE, ERROR_HOST_UNREACHABLE, WSAEADDRNOTAVAIL, WSAENETDOWN, WSAENETUNREACH, WSAETIMEDOUT,
        // WSAEHOSTDOWN, WSAEHOSTUNREACH
        1231 | 1232 | 10049 | 10050 | 10051 | 10060 | 10064 | 10065 => Fault::Unreachable,
        // ERROR_PORT_UNREACHABLE, WSAENETRESET ("time to live expired"), WSAECONNABORTED, WSAECONNRESET, WSAECONNREFUSED
        1234 | 10052 | 10053 | 10054 | 10061 => Fault::Refused,
        // ERROR_MORE_DATA, WSAEMSGSIZE
        234 | 10040 => Fault::TooLong,
        // WSAEACCES
        10013 => Fault::Forbidden,
        // WSAEINVAL, WSAEOPNOTSUPP
        10022 | 10045 => Fault::Odd,
        _ => return None,
    })
}

/// What an error means whose number says nothing to us.
const fn of_kind(kind: ErrorKind) -> Fault {
    match kind {
        ErrorKind::WouldBlock => Fault::NotNow,
        ErrorKind::Interrupted => Fault::Interrupted,
        ErrorKind::OutOfMemory => Fault::NoRoom,
        ErrorKind::NetworkUnreachable
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable
        | ErrorKind::TimedOut => Fault::Unreachable,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            Fault::Refused
        }
        ErrorKind::PermissionDenied => Fault::Forbidden,
        ErrorKind::InvalidInput | ErrorKind::Unsupported => Fault::Odd,
        _ => Fault::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault, and the error numbers that mean it: written down from the headers of the systems in [`SYSTEMS`].
    type Row = (Fault, [&'static [i32]; 3]);

    const SYSTEMS: [System; 3] = [System::Linux, System::Bsd, System::Windows];
    const TABLE: [Row; 8] = [
        (Fault::NotNow, [&[11], &[35], &[10035]]),
        (Fault::Interrupted, [&[4], &[4], &[10004]]),
        (Fault::NoRoom, [&[12, 105], &[12, 55], &[8, 10055]]),
        (
            Fault::Unreachable,
            [
                &[64, 99, 100, 101, 110, 112, 113],
                &[49, 50, 51, 60, 64, 65],
                &[1231, 1232, 10049, 10050, 10051, 10060, 10064, 10065],
            ],
        ),
        (Fault::Refused, [&[92, 102, 103, 104, 111], &[52, 53, 54, 61], &[1234, 10052, 10053, 10054, 10061]]),
        (Fault::TooLong, [&[90], &[40], &[234, 10040]]),
        (Fault::Forbidden, [&[1, 13], &[1, 13], &[10013]]),
        (Fault::Odd, [&[5, 22, 95], &[5, 22, 45, 102], &[10022, 10045]]),
    ];

    #[test]
    fn every_error_number_means_one_fault_on_every_system() {
        for (at, system) in SYSTEMS.into_iter().enumerate() {
            for code in -1..=11_100 {
                let mut rows = TABLE.iter().filter(|(_, systems)| systems[at].contains(&code));
                assert_eq!(system.fault(code), rows.next().map(|row| row.0), "{system:?} {code}");
                assert_eq!(rows.next(), None, "{system:?} {code} stands in two rows");
            }
        }
    }

    #[test]
    fn our_numbers_and_the_standard_library_agree_where_it_has_a_kind() {
        let Some(system) = System::HERE else { return };
        let mut compared = 0;
        for code in 1..=11_100 {
            let by_kind = of_kind(io::Error::from_raw_os_error(code).kind());
            if let Some(fault) = system.fault(code)
                && by_kind != Fault::Broken
            {
                assert_eq!(fault, by_kind, "error {code}");
                compared += 1;
            }
        }
        assert!(compared >= 10, "only {compared} numbers have a kind");
    }

    #[test]
    fn an_error_without_number_is_known_by_its_kind_and_an_unknown_one_is_broken() {
        assert_eq!(Fault::of(&ErrorKind::WouldBlock.into()), Fault::NotNow);
        assert_eq!(Fault::of(&ErrorKind::ConnectionReset.into()), Fault::Refused);
        assert_eq!(Fault::of(&ErrorKind::HostUnreachable.into()), Fault::Unreachable);
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(9999)), Fault::Broken);
        assert_eq!(Fault::of(&io::Error::other("none of ours")), Fault::Broken);
    }

    #[test]
    fn each_fault_has_a_counter_of_its_own() {
        let counters = FaultCounters::default();
        for (times, fault) in Fault::ALL.into_iter().enumerate() {
            (0..times).for_each(|_| counters.count(fault));
        }
        for (times, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(counters.get(fault), times as u64);
        }
        assert_eq!(counters.total(), (0..9).sum::<u64>());
    }
}
