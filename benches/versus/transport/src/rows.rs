//! What is measured: each row is a function of the library and the options, and prints lines of `name=value` words.
//!
//! Fed by: the command line. Yields: lines. Never: compares libraries; `cargo xtask versus` does.

use crate::endpoints::Patience;
use crate::far::{Manner, TICK, number, quantiles};
use crate::message::{Kind, SIZE, message, read, write};
use crate::near::Near;
use crate::system::now_ns;
use retick::netem::Link;
use std::time::{Duration, Instant};

/// Options of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of the link, and of everything drawn.
    pub seed: u64,
    /// How long a row measures.
    pub seconds: f64,
    /// Messages are reliable.
    pub reliable: bool,
    /// How many, in `burst`.
    pub count: u64,
    /// Bytes of all of them together; 0: 64 each.
    pub total: usize,
    /// Of the bottleneck; 0 = none.
    pub mbit_s: f64,
}

/// One way over the lossy link, without loss.
const ONE_WAY_MS: f64 = 50.0;
/// A burst that takes longer has failed.
const BURST_WITHIN: Duration = Duration::from_secs(30);

/// The link of the issues: 50 ± 10 ms one way, 5 % loss; a bottleneck has a queue of 64 KB.
fn lossy(options: &Options) -> Link {
    let rate_bytes_s = (options.mbit_s * 125_000.0) as u32;
    Link {
        latency: Duration::from_millis(40),
        jitter: Duration::from_millis(20),
        loss_ppm: 50_000,
        rate_bytes_s,
        queue_bytes: if rate_bytes_s > 0 { 64_000 } else { 0 },
        ..Link::default()
    }
}

const ONE: Manner = Manner { peers: 1, ticks: false, patience: Patience::Sleeps(Duration::from_micros(200)) };

/// Bytes on the wire of a lone message: both ends send one per frame.
pub fn overhead(library: &str, options: &Options) -> Result<String, String> {
    let mut near = Near::open(library, Some(Link::default()), options.seed, Manner { ticks: true, ..ONE })?;
    let send = |near: &mut Near, seconds: f64| {
        let frames = (seconds / TICK.as_secs_f64()) as u64;
        let mut next = Instant::now();
        for number in 0..frames {
            next += TICK;
            near.end.turn(&mut |_, _| {});
            let mut ping = message(Kind::Ping, number);
            ping[1] = u8::from(options.reliable);
            near.end.send(0, options.reliable, &ping);
            near.end.flush();
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        frames
    };
    send(&mut near, 1.0);
    let take = |near: &Near| near.proxy.as_ref().map(crate::proxy::Proxy::take_traffic).unwrap_or_default();
    take(&near);
    near.far.clear()?;
    let sent = send(&mut near, options.seconds);
    let [up, down] = take(&near);
    let messages = (2 * sent) as f64;
    Ok(format!(
        "average={:.2} lone={} packets={:.2}",
        (up.bytes + down.bytes) as f64 / messages - SIZE as f64,
        up.usual_size(SIZE) as i64 - SIZE as i64,
        (up.packets + down.packets) as f64 / messages,
    ))
}

/// Half a round trip on the loopback, one message after the other; both ends wait for their socket.
pub fn ping(library: &str, options: &Options) -> Result<String, String> {
    let mut near = Near::open(library, None, options.seed, Manner { patience: Patience::Yields, ..ONE })?;
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    let (mut halves, mut pings, mut lost) = (Vec::with_capacity(1 << 20), 0, 0);
    while Instant::now() < until {
        pings += 1;
        let mut ping = message(Kind::Ping, pings);
        ping[1] = u8::from(options.reliable);
        near.end.send(0, options.reliable, &ping);
        near.end.flush();
        let sent = now_ns();
        let mut came = false;
        loop {
            near.end.turn(&mut |_, bytes| {
                if let Some((Kind::Pong, at, number)) = read(bytes)
                    && number == pings
                {
                    halves.push((now_ns() - at) / 2);
                    came = true;
                }
            });
            if came {
                break;
            }
            if now_ns() - sent > 200_000_000 {
                lost += 1;
                break;
            }
            near.end.flush();
            near.end.wait(Duration::from_millis(5));
        }
    }
    let [p50, p99] = quantiles(&mut halves, [0.5, 0.99]);
    Ok(format!("pings={pings} lost={lost} half_p50_us={:.1} half_p99_us={:.1}", p50 / 1e3, p99 / 1e3))
}

/// A small reliable message 20 times a second over the lossy link: how late it comes.
pub fn steady(library: &str, options: &Options) -> Result<String, String> {
    let mut near = Near::open(library, Some(lossy(options)), options.seed, ONE)?;
    near.far.clear()?;
    let every = Duration::from_millis(50);
    let count = (options.seconds / every.as_secs_f64()) as u64;
    let mut next = Instant::now();
    let mut refused = 0;
    for number in 0..count {
        let mut note = message(Kind::Note, number);
        note[1] = 1;
        if !near.end.send(0, true, &note) {
            refused += 1;
        }
        near.end.flush();
        next += every;
        near.idle_until(next);
    }
    near.idle(Duration::from_millis(1500));
    let told = near.far.tell()?;
    let missing = count - refused - (number(&told, "messages") as u64).min(count);
    let over = |name| number(&told, name) - ONE_WAY_MS;
    Ok(format!(
        "sent={count} refused={refused} missing={missing} over_p50_ms={:.1} over_p99_ms={:.1} over_p999_ms={:.1} {told}",
        over("late_p50_ms"),
        over("late_p99_ms"),
        over("late_p999_ms"),
    ))
}

/// Many reliable messages at once over the lossy link: when the last one is there, and what it cost on the wire.
pub fn burst(library: &str, options: &Options) -> Result<String, String> {
    let mut near = Near::open(library, Some(lossy(options)), options.seed, ONE)?;
    let take = |near: &Near| near.proxy.as_ref().map(crate::proxy::Proxy::take_traffic).unwrap_or_default();
    take(&near);
    near.far.clear()?;
    let (size, count) = match options.total {
        0 => (SIZE, options.count),
        total => {
            let size = near.end.largest().min(total);
            (size, total.div_ceil(size) as u64)
        }
    };
    let mut bytes = vec![7; size];
    let (mut sent, mut came, mut asked) = (0, 0.0, Instant::now());
    let began = Instant::now();
    let mut told = String::new();
    while came < count as f64 {
        if began.elapsed() > BURST_WITHIN {
            break;
        }
        while sent < count {
            write(&mut bytes, Kind::Bulk, sent);
            bytes[1] = 1;
            if !near.end.send(0, true, &bytes) {
                break;
            }
            sent += 1;
        }
        near.end.flush();
        near.end.turn(&mut |_, _| {});
        near.end.wait(Duration::from_millis(1));
        if asked.elapsed() > Duration::from_millis(20) {
            asked = Instant::now();
            told = near.far.tell()?;
            came = number(&told, "messages");
        }
    }
    let [up, down] = take(&near);
    let payload = count as f64 * size as f64;
    let line_ms = if options.mbit_s > 0.0 { payload / (options.mbit_s * 125.0) } else { 0.0 } + ONE_WAY_MS;
    Ok(format!(
        "line_ratio={:.3} done={} up_ratio={:.3} down_ratio={:.3} up_packets={} payload={payload:.0} {told}",
        number(&told, "took_ms") / line_ms,
        u8::from(came >= count as f64),
        up.bytes as f64 / payload,
        down.bytes as f64 / payload,
        up.packets,
    ))
}
