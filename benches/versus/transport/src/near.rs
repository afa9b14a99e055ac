//! The near end of a row: its far end, the link between them, and the connection once it carries messages.
//!
//! Fed by: rows. Yields: a connection, and the loop around it. Never: measures.

use crate::endpoints::{self, Endpoint};
use crate::far::{Far, Manner};
use crate::message::{Kind, message, read};
use crate::proxy::Proxy;
use retick::netem::Link;
use std::time::{Duration, Instant};

/// A connection that takes longer has failed.
const CONNECTS_WITHIN: Duration = Duration::from_secs(15);
const HELLO_EVERY: Duration = Duration::from_millis(200);

/// A connection and what is around it. The order of fields is that of their end.
pub struct Near {
    /// Our end.
    pub end: Box<dyn Endpoint>,
    /// The link, where there is one between the ends.
    pub proxy: Option<Proxy>,
    /// The other end.
    pub far: Far,
}

impl Near {
    /// Starts a far end, lays a link (none: both ends on the same loopback), and connects.
    pub fn open(library: &str, link: Option<Link>, seed: u64, manner: Manner) -> Result<Self, String> {
        let far = Far::start(library, manner)?;
        let proxy = link.map(|link| Proxy::start(far.at.address, link, seed)).transpose()?;
        let mut at = far.at.clone();
        if let Some(proxy) = &proxy {
            at.address = proxy.address;
        }
        let end = endpoints::connect(library, &at, 0, manner.patience)?;
        let mut near = Self { end, proxy, far };
        near.greet().map_err(|problem| format!("{library}: {problem}"))?;
        Ok(near)
    }

    fn greet(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let mut greeted = None;
        let mut welcome = false;
        while !welcome {
            if began.elapsed() > CONNECTS_WITHIN {
                return Err("no connection".into());
            }
            self.end.turn(&mut |_, bytes| {
                welcome |= matches!(read(bytes), Some((Kind::Welcome, ..)));
            });
            if self.end.peers() > 0 && greeted.is_none_or(|at: Instant| at.elapsed() > HELLO_EVERY) {
                greeted = Some(Instant::now());
                for reliable in [true, false] {
                    let mut hello = message(Kind::Hello, 0);
                    hello[1] = u8::from(reliable);
                    self.end.send(0, reliable, &hello);
                }
            }
            self.end.flush();
            self.end.wait(Duration::from_millis(1));
        }
        self.idle(Duration::from_millis(300));
        Ok(())
    }

    /// Lets the library run for a while.
    pub fn idle(&mut self, time: Duration) {
        self.idle_until(Instant::now() + time);
    }

    /// Lets the library run until then.
    pub fn idle_until(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.end.turn(&mut |_, _| {});
            self.end.flush();
            self.end.wait(left.min(Duration::from_millis(1)));
        }
    }
}
