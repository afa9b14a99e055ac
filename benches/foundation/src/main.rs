//! What whole meshes cost and reach in virtual time; each figure as a line of `name=value` words.
//!
//! Fed by: the name of a figure. Yields: its lines. Never: knows a bar; `cargo xtask bench` does.

mod meter;
mod world;

use meter::Doer;
use retick::base::Frame;
use retick::base::rng::Rng;
use retick::config::SessionConfig;
use retick::netem::Link;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;
use world::{Asked, Game, World};

const USAGE: &str = "usage: bench-foundation cpu | share | deaths [SEEDS] | death SEED | allocations";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cpu"] => cpu(),
        ["share"] => share(),
        ["deaths"] => {
            deaths(300);
            Ok(())
        }
        ["deaths", seeds] => seeds.parse().map_err(|_| USAGE.to_owned()).map(deaths),
        ["death", seed] => seed.parse().map_err(|_| USAGE.to_owned()).and_then(death),
        ["allocations"] => allocations(),
        _ => Err(USAGE.into()),
    };
    if let Err(problem) = &result {
        eprintln!("{problem}");
    }
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// 60 ms one way, 2 % loss.
fn ordinary() -> Link {
    Link { latency: Duration::from_millis(60), loss_ppm: 20_000, ..Link::default() }
}

/// The same with 20 % loss and 40 ms jitter.
fn awful() -> Link {
    Link { jitter: Duration::from_millis(40), loss_ppm: 200_000, ..ordinary() }
}

/// CPU time of a match of 3,600 frames with 4 peers, without the game's own work.
fn cpu() -> Result<(), String> {
    for round in 0..3 {
        let before = meter::cpu_time();
        let mut world = World::start(7 + round, 4, ordinary(), &SessionConfig::default())?;
        let played = meter::cpu_time();
        while world.alive().any(|peer| peer.session.current() < Frame(3600)) {
            world.tick();
        }
        let after = meter::cpu_time();
        let asked = world.alive().fold(Asked::default(), |sum, peer| Asked {
            steps: sum.steps + peer.asked.steps,
            copies: sum.copies + peer.asked.copies,
        });
        let game = cpu_of_game(asked);
        println!(
            "figure=cpu peers=4 frames=3600 cpu_s={:.3} lobby_s={:.3} game_s={:.3} steps={}",
            after.saturating_sub(before + game).as_secs_f64(),
            played.saturating_sub(before).as_secs_f64(),
            game.as_secs_f64(),
            asked.steps,
        );
    }
    Ok(())
}

/// What so many steps and copies of the game cost alone.
fn cpu_of_game(asked: Asked) -> Duration {
    let (mut game, mut copy) = (Game::new(), vec![0; 1024]);
    let before = meter::cpu_time();
    for step in 0..asked.steps {
        game.step(Frame(step as i32), black_box(&[1; 16]));
    }
    for _ in 0..asked.copies {
        game.save(black_box(&mut copy));
    }
    black_box(&game);
    meter::cpu_time().saturating_sub(before)
}

/// How many ticks of a minute had their frame, with the default configuration.
fn share() -> Result<(), String> {
    const TICKS: u32 = 3600;
    for peers in 2..=16 {
        let mut world = World::start(u64::from(peers), peers, ordinary(), &SessionConfig::default())?;
        (0..TICKS).for_each(|_| world.tick());
        let lost: u32 = world.alive().map(|peer| peer.lost).sum();
        let worst = world.alive().map(|peer| peer.lost).max().unwrap_or(0);
        let of = f64::from(TICKS * peers);
        let share = 100.0 * (1.0 - f64::from(lost) / of);
        let frames = world.alive().map(|peer| peer.session.current().0).min().unwrap_or(0);
        println!(
            "figure=share peers={peers} share={share:.3} worst_lost={worst} ticks={TICKS} frames={frames}"
        );
    }
    Ok(())
}

/// One of 4 to 10 peers dies: how many frames the worst survivor loses, and any survivor; and what the worst of them loses
/// in the same time when nobody dies.
fn deaths(seeds: u64) {
    for (name, link) in [("ordinary", ordinary()), ("awful", awful())] {
        let (mut worst, mut each, mut calm) = (Vec::new(), Vec::new(), Vec::new());
        let (mut wrong, mut most) = (0, (0, 0));
        for seed in 0..seeds {
            match (lost_frames(seed, link, true), lost_frames(seed, link, false)) {
                (Ok(lost), Ok(undisturbed)) => {
                    worst.extend(lost.iter().max());
                    most = most.max((lost.iter().copied().max().unwrap_or(0), seed));
                    each.extend(lost);
                    calm.extend(undisturbed.iter().max());
                }
                (Err(problem), _) | (_, Err(problem)) => {
                    wrong += 1;
                    let problem = problem.replace(' ', "_");
                    println!("figure=death_failed network={name} seed={seed} problem={problem}");
                }
            }
        }
        println!(
            "figure=deaths network={name} seeds={seeds} median={} p99={} most={} of_seed={} each_median={} each_p99={} \
             calm_median={} calm_p99={} failed={wrong}",
            quantile(&mut worst, 0.5),
            quantile(&mut worst, 0.99),
            most.0,
            most.1,
            quantile(&mut each, 0.5),
            quantile(&mut each, 0.99),
            quantile(&mut calm, 0.5),
            quantile(&mut calm, 0.99),
        );
    }
}

/// One mesh of `deaths` again, on both networks, with and without the death.
fn death(seed: u64) -> Result<(), String> {
    for (name, link) in [("ordinary", ordinary()), ("awful", awful())] {
        for dies in [true, false] {
            println!(
                "figure=death network={name} seed={seed} dies={dies} {:?}",
                lost_frames(seed, link, dies)
            );
        }
    }
    Ok(())
}

fn quantile(values: &mut [u32], part: f64) -> u32 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part) as usize).copied().unwrap_or(0)
}

/// Ticks without a new frame of every survivor, from the death on.
fn lost_frames(seed: u64, link: Link, dies: bool) -> Result<Vec<u32>, String> {
    /// After the death; all must be in play again long before.
    const AFTER: i32 = 360;
    let mut rng = Rng::new(seed);
    let peers = 4 + rng.below(7) as u32;
    let victim = rng.below(u64::from(peers)) as usize;
    let at = 60 + rng.below(120);
    let config = SessionConfig { desync_level: 2, ..SessionConfig::default() };
    let mut world = World::start(seed, peers, link, &config)?;
    (0..at).for_each(|_| world.tick());
    let before: Vec<u32> = world.peers.iter().map(|peer| peer.lost).collect();
    let frame = world.alive().map(|peer| peer.session.current().0).min().unwrap_or(0);
    if dies {
        world.kill(victim);
    }
    (0..AFTER).for_each(|_| world.tick());
    let frames = world.alive().map(|peer| peer.session.current().0).min().unwrap_or(0) - frame;
    world.compare(500)?;
    if frames < AFTER - 60 {
        return Err(format!("{peers} peers, only {frames} frames after the death"));
    }
    let survivors = world.peers.iter().zip(&before).enumerate().filter(|&(index, _)| index != victim);
    Ok(survivors.map(|(_, (peer, before))| peer.lost - before).collect())
}

/// Heap allocations of 1,200 steady ticks, after 600.
fn allocations() -> Result<(), String> {
    const TICKS: u32 = 1200;
    let count = |work: &mut dyn FnMut()| {
        let of = [Doer::GameHalf, Doer::NetworkHalf];
        let before = of.map(meter::allocations);
        work();
        let after = of.map(meter::allocations);
        [after[0] - before[0], after[1] - before[1]]
    };
    let control = count(&mut || {
        meter::run(Doer::GameHalf, || black_box(Box::new(1)));
        meter::run(Doer::NetworkHalf, || black_box(Box::new(2)));
    });
    println!("figure=allocations_control game_half={} network_half={}", control[0], control[1]);
    for (name, link) in [("perfect", Link::default()), ("ordinary", ordinary()), ("awful", awful())] {
        for peers in [2, 4, 10] {
            let mut world = World::start(5, peers, link, &SessionConfig::default())?;
            (0..600).for_each(|_| world.tick());
            let [game, network] = count(&mut || (0..TICKS).for_each(|_| world.tick()));
            println!(
                "figure=allocations network={name} peers={peers} ticks={TICKS} game_half={game} network_half={network}"
            );
        }
    }
    Ok(())
}
