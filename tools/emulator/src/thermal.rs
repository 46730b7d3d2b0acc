//! Heat: what comes in with each byte, what goes out to the surroundings, and what the drive does when it is too much.
//!
//! One body with one temperature. Its power is that of an idle drive and an energy for each byte; the temperature that
//! it tends to is the surroundings' and so many kelvin for each watt, and it gets there as a capacitor is charged. Where
//! the drive has thresholds for it, it slows itself down (TMT1 lightly, TMT2 heavily), with two kelvin to spare before it
//! is quick again, and counts how often and how long, as it counts the time above its warning and critical thresholds.
#![forbid(unsafe_code)]

use crate::model::Model;

/// The temperature is worked out anew after so long.
const STEP_NS: u64 = 20_000_000;
/// A throttled drive is quick again when it is so much cooler than the threshold.
const HYSTERESIS_K: f64 = 2.0;

/// Times and numbers of what happened because of heat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) warning_ns: u64,
    pub(crate) critical_ns: u64,
    pub(crate) light_ns: u64,
    pub(crate) heavy_ns: u64,
    pub(crate) light: u32,
    pub(crate) heavy: u32,
}

/// How much the drive holds back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Throttle {
    #[default]
    Not,
    Light,
    Heavy,
}

/// A drive's temperature and what follows from it.
#[derive(Debug)]
pub(crate) struct Thermal {
    kelvin: f64,
    /// Whether something outside holds the temperature where it is.
    held: bool,
    /// Watts since the last step, on average.
    watts: f64,
    /// Joules since the last step, besides those of an idle drive.
    joules: f64,
    at_ns: u64,
    throttle: Throttle,
    /// Thresholds for slowing down, in kelvin; 0 for never.
    thresholds: [u16; 2],
    pub(crate) counters: Counters,
}

impl Thermal {
    pub(crate) fn new(model: &Model, held: Option<u16>) -> Self {
        Self {
            kelvin: f64::from(held.unwrap_or(model.temperature)),
            held: held.is_some() || model.thermal_resistance == 0.0,
            watts: model.idle_power,
            joules: 0.0,
            at_ns: 0,
            throttle: Throttle::Not,
            thresholds: [model.throttle_light, model.throttle_heavy],
            counters: Counters::default(),
        }
    }

    /// The composite temperature.
    pub(crate) fn kelvin(&self) -> u16 {
        self.kelvin as u16
    }

    /// The temperature at the controller, which follows the load at once.
    pub(crate) fn second_kelvin(&self, model: &Model) -> u16 {
        let gigabyte_per_s = (self.watts - model.idle_power) / model.read_energy.max(0.001);
        let load = (gigabyte_per_s / 3.5).clamp(0.0, 1.0);
        self.kelvin() + (load * f64::from(model.second_sensor)) as u16
    }

    /// Bytes were moved.
    pub(crate) fn moved(&mut self, model: &Model, bytes: u64, write: bool) {
        let joules_per_gb = if write { model.write_energy } else { model.read_energy };
        self.joules += joules_per_gb * bytes as f64 / 1e9;
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, model: &Model, now_ns: u64) {
        let ns = now_ns.saturating_sub(self.at_ns);
        if ns < STEP_NS {
            return;
        }
        self.at_ns = now_ns;
        self.watts = model.idle_power + self.joules / (ns as f64 * 1e-9);
        self.joules = 0.0;
        if !self.held {
            let tends_to = f64::from(model.ambient) + model.thermal_resistance * self.watts;
            self.kelvin = tends_to + (self.kelvin - tends_to) * (-(ns as f64) / model.thermal_time.max(1) as f64).exp();
        }
        let counters = &mut self.counters;
        let kelvin = self.kelvin as u16;
        if kelvin >= model.critical_temperature {
            counters.critical_ns += ns;
        } else if kelvin >= model.warning_temperature {
            counters.warning_ns += ns;
        }
        match self.throttle {
            Throttle::Not => {}
            Throttle::Light => counters.light_ns += ns,
            Throttle::Heavy => counters.heavy_ns += ns,
        }
        let above = |threshold: u16, already: bool| {
            let spare_k = if already { HYSTERESIS_K } else { 0.0 };
            threshold != 0 && self.kelvin >= f64::from(threshold) - spare_k
        };
        let [light, heavy] = self.thresholds;
        let throttle = if above(heavy, self.throttle == Throttle::Heavy) {
            Throttle::Heavy
        } else if above(light, self.throttle != Throttle::Not) {
            Throttle::Light
        } else {
            Throttle::Not
        };
        counters.light += u32::from(throttle == Throttle::Light && self.throttle < throttle);
        counters.heavy += u32::from(throttle == Throttle::Heavy && self.throttle < throttle);
        self.throttle = throttle;
    }

    /// The share of the drive's speed that is left.
    pub(crate) fn share(&self, model: &Model) -> f64 {
        match self.throttle {
            Throttle::Not => 1.0,
            Throttle::Light => model.share_light,
            Throttle::Heavy => model.share_heavy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model {
            ambient: 300,
            temperature: 300,
            warning_temperature: 350,
            critical_temperature: 360,
            throttle_light: 340,
            throttle_heavy: 355,
            idle_power: 1.0,
            read_energy: 2.0,
            thermal_resistance: 10.0,
            thermal_time: 60_000_000_000,
            ..Model::by_name("ideal").unwrap().unwrap()
        }
    }

    /// Seconds of reading so many bytes in each.
    fn load(thermal: &mut Thermal, model: &Model, from_s: u64, seconds: u64, bytes: u64) {
        for second in from_s..from_s + seconds {
            thermal.moved(model, bytes, false);
            thermal.pass(model, (second + 1) * 1_000_000_000);
        }
    }

    #[test]
    fn a_drive_warms_up_to_what_its_power_and_the_air_allow_and_cools_down_again() {
        let model = model();
        let mut thermal = Thermal::new(&model, None);
        load(&mut thermal, &model, 0, 60, 1_000_000_000); // 3 W: 30 K above the air.
        assert_eq!(thermal.kelvin(), 318, "63 % of the way");
        load(&mut thermal, &model, 60, 600, 1_000_000_000);
        assert_eq!(thermal.kelvin(), 329);
        load(&mut thermal, &model, 660, 600, 0);
        assert_eq!(thermal.kelvin(), 310);
        assert_eq!(thermal.counters, Counters::default());
    }

    #[test]
    fn heat_slows_it_down_and_is_counted() {
        let model = model();
        let mut thermal = Thermal::new(&model, None);
        load(&mut thermal, &model, 0, 600, 3_000_000_000); // 7 W: 70 K above the air.
        assert!((thermal.share(&model) - model.share_heavy).abs() < 1e-9);
        let counters = thermal.counters;
        assert_eq!((counters.light, counters.heavy), (1, 1));
        assert!(counters.light_ns > 10_000_000_000 && counters.heavy_ns > 300_000_000_000, "{counters:?}");
        assert!(counters.warning_ns > 0 && counters.critical_ns > 300_000_000_000, "{counters:?}");
        load(&mut thermal, &model, 600, 600, 0);
        assert!((thermal.share(&model) - 1.0).abs() < 1e-9, "cool, and quick again");
    }

    #[test]
    fn what_is_held_does_not_move() {
        let model = model();
        let mut thermal = Thermal::new(&model, Some(345));
        load(&mut thermal, &model, 0, 100, 9_000_000_000);
        assert_eq!(thermal.kelvin(), 345);
    }
}
