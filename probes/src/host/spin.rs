//! How fast a processor really runs: a chain of operations of known length, timed.
//!
//! Works where no counter is to be had, as on virtual machines. Each step of the chain needs the step before it, and an
//! addition and an exclusive-or take one cycle each on every x86-64 and arm64 server core, so a chain of n steps takes
//! n cycles. The best of several bursts is taken: an interruption only ever makes a burst look slower.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use plimsoll_model::{Absence, Absent, Megahertz, Reading};

use crate::{Machine, parse};

/// A governor may take tens of milliseconds to raise an idle processor's frequency, so the spin goes on until it has not
/// risen for this long,
const STEADY: Duration = Duration::from_millis(25);
/// but no longer than this.
const SPIN_MAX: Duration = Duration::from_millis(120);
/// A rise is more than the noise of one burst.
const RISE: f64 = 1.01;
const ROUNDS: u32 = 1 << 16;
/// Two operations a step, eight steps a round.
const CYCLES: u32 = ROUNDS * 16;

/// Spins on one processor until its speed is steady, 25 to 120 ms. A tree says in `answers/cpu-spin` what its machine saw, in MHz.
pub(super) fn observe(machine: &Machine) -> Reading<Megahertz> {
    if !machine.is_live() {
        return machine.read("/answers/cpu-spin", |text| parse::one_number(text).map(Megahertz));
    }
    let best = steady_best();
    let result = if best >= 1.0 {
        Ok(Megahertz(best.round() as u32))
    } else {
        Err(Absent::new(Absence::Unreadable, "the clock did not move during the spin"))
    };
    machine.reading("a short spin of one processor", result)
}

fn steady_best() -> f64 {
    let began = Instant::now();
    let (mut best, mut rose) = (0.0_f64, began);
    while rose.elapsed() < STEADY && began.elapsed() < SPIN_MAX {
        let seen = burst(began.elapsed().subsec_nanos().into());
        if seen > best * RISE {
            rose = Instant::now();
        }
        best = best.max(seen);
    }
    best
}

fn burst(seed: u64) -> f64 {
    // Opaque operands: a compiler that knew them could fold the chain.
    let (mut x, add, flip) =
        (black_box(seed), black_box(0x9e37_79b9_7f4a_7c15_u64), black_box(0xc2b2_ae3d_27d4_eb4f_u64));
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
        x = x.wrapping_add(add) ^ flip;
    }
    black_box(x);
    let us = begin.elapsed().as_secs_f64() * 1e6;
    if us > 0.0 { f64::from(CYCLES) / us } else { 0.0 }
}
