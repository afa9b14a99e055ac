//! Windows' own switches of a UDP socket.
//!
//! Fed by: a new socket. Yields: the same, which no longer tells of earlier datagrams that found nobody.
//! Never: fails; without the switches the errors come, and `datagrams` takes them as what they are.

use std::net::UdpSocket;
use std::os::windows::io::AsRawSocket;
use std::ptr;
use windows_sys::Win32::Networking::WinSock::{
    SIO_UDP_CONNRESET, SIO_UDP_NETRESET, SOCKET, WSAGetLastError, WSAIoctl,
};

/// "Port unreachable" and "time to live expired" would otherwise end a receiving call, though they tell of another
/// datagram, and a flood of forged ones would keep us from reading.
pub(in crate::io) fn hide_resets(socket: &UdpSocket) {
    for switch in [SIO_UDP_CONNRESET, SIO_UDP_NETRESET] {
        let (off, mut returned) = (0_u32, 0_u32);
        // SAFETY: the socket is open while it is borrowed; both pointers are to live variables, of which the call reads
        // the size named and writes `returned`; it is not overlapped, so nothing is kept.
        let result = unsafe {
            WSAIoctl(
                socket.as_raw_socket() as SOCKET,
                switch,
                (&raw const off).cast(),
                size_of_val(&off) as u32,
                ptr::null_mut(),
                0,
                &raw mut returned,
                ptr::null_mut(),
                None,
            )
        };
        if result != 0 {
            // SAFETY: reads a number of this thread.
            let code = unsafe { WSAGetLastError() };
            log::info!("io: a switch of a UDP socket is not known here (error {code})");
        }
    }
}
