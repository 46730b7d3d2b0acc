//! A model: what makes one emulated drive behave unlike another, all of it physical.
//!
//! Each model is one file of `key = value` lines in `models/`, with a comment wherever a figure needs one. A key that is
//! not known, is missing, or is given twice is an error that a test sees, since the files are part of the program.
#![forbid(unsafe_code)]

use crate::link::PcieLink;
use crate::value;

/// The models that come with the program: name and file.
const FILES: &[(&str, &str)] = &[
    ("ideal", include_str!("../models/ideal.model")),
    ("null", include_str!("../models/null.model")),
    ("990-evo-plus", include_str!("../models/990-evo-plus.model")),
    ("980", include_str!("../models/980.model")),
    ("970-evo-plus", include_str!("../models/970-evo-plus.model")),
    ("960-evo", include_str!("../models/960-evo.model")),
    ("worn", include_str!("../models/worn.model")),
    ("hot", include_str!("../models/hot.model")),
    ("dying", include_str!("../models/dying.model")),
];

/// What the data lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// Memory, taken only for what is written.
    Memory,
    /// Nothing: commands are answered at once, no data moves.
    Null,
}

/// Which time a model lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// Time that the emulator moves: the same run gives the same figures.
    Virtual,
    /// The machine's.
    Real,
}

macro_rules! model {
    ($( $(#[$doc:meta])+ $field:ident: $ty:ty = $parse:expr $(, $default:expr)?; )+) => {
        /// The parameters of a model. Times are in nanoseconds, temperatures in kelvin.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Model {
            /// What it is called on the command line.
            pub name: String,
            $( $(#[$doc])+ pub $field: $ty, )+
        }

        impl Model {
            /// Reads a model's file.
            pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
                $( let mut $field: Option<$ty> = None; )+
                for (index, line) in text.lines().enumerate() {
                    let line = line.trim();
                    if line.is_empty() || line.starts_with('#') {
                        continue;
                    }
                    let error = |what| ModelError { model: name.to_owned(), line: index + 1, what };
                    let (key, given) = line.split_once('=').ok_or_else(|| error("not `key = value`"))?;
                    let (key, given) = (key.trim(), given.trim());
                    match key {
                        $( key if key == stringify!($field) => {
                            let parse: fn(&str) -> Option<$ty> = $parse;
                            let parsed = parse(given).ok_or_else(|| error("not a value of this key"))?;
                            if $field.replace(parsed).is_some() {
                                return Err(error("given twice"));
                            }
                        } )+
                        _ => return Err(error("no such key")),
                    }
                }
                $( $( let $field = $field.or_else(|| Some($default)); )? )+
                Ok(Self {
                    name: name.to_owned(),
                    $( $field: $field.ok_or_else(|| ModelError {
                        model: name.to_owned(), line: 0, what: concat!("missing: ", stringify!($field)),
                    })?, )+
                })
            }
        }
    };
}

model! {
    /// One line that says what it is.
    summary: String = |text| Some(text.to_owned());
    /// What the drive's own end of the link can do.
    link: PcieLink = value::link;
    /// What the port above it can do.
    slot: PcieLink = value::link;
    /// What the link between them trained to; nothing for the common best of both.
    trained: Option<PcieLink> = |text| value::link(text).map(Some), None;
    /// The slowest link between that port and the processor (a switch, a chipset); nothing where there is none slower.
    above: Option<PcieLink> = |text| value::link(text).map(Some), None;
    /// Payload size set on the path, in bytes.
    payload: u32 = |text| text.parse().ok().filter(|size: &u32| size.is_power_of_two() && (128..=4096).contains(size));
    /// Read request size set on the path, in bytes.
    read_request: u32 =
        |text| text.parse().ok().filter(|size: &u32| size.is_power_of_two() && (128..=4096).contains(size));
    /// The share of the link that acknowledgements and flow control leave.
    link_efficiency: f64 = |text| text.parse().ok().filter(|share| (0.1..=1.0).contains(share));
    /// The share of the link that the host's root port takes in: what it loses between link and memory.
    root_port: f64 = value::share, 1.0;
    /// The share of the link at which the host's root port answers the drive's reads of memory.
    root_port_out: f64 = value::share, 1.0;
    /// Reads of the host's memory that the drive may have outstanding.
    tags: u32 = |text| text.parse().ok().filter(|tags| (1..=1024).contains(tags)), 1024;
    /// From a read of the host's memory to its answer.
    round_trip: u64 = value::time_ns, 0;
    /// Between two commands that the controller takes up.
    command: u64 = value::time_ns;
    /// What the host's software and processor take for one command, per queue.
    host: u64 = value::time_ns, 0;
    /// From the doorbell to the command's fetch.
    doorbell: u64 = value::time_ns;
    /// From the end of the transfer to the completion.
    completion: u64 = value::time_ns;
    /// What a read takes in the controller besides, while others go on: looking up, decoding, correcting.
    controller: u64 = value::time_ns, 0;
    /// An admin command.
    admin: u64 = value::time_ns;
    /// From EN to RDY, and back.
    ready: u64 = value::time_ns;
    /// From SHN to the end of the shutdown.
    shutdown: u64 = value::time_ns;
    /// What the data lies in.
    media: MediaKind = |text| match text {
        "memory" => Some(MediaKind::Memory),
        "null" => Some(MediaKind::Null),
        _ => None,
    }, MediaKind::Memory;
    /// The time it lives in.
    clock: ClockKind = |text| match text {
        "virtual" => Some(ClockKind::Virtual),
        "real" => Some(ClockKind::Real),
        _ => None,
    }, ClockKind::Virtual;
    /// Capacity of the first namespace in bytes.
    capacity: u64 = value::bytes;
    /// Bytes of a logical block.
    lba: u32 = |text| text.parse().ok().filter(|&size| size == 512 || size == 4096);
    /// Dies that work at the same time.
    dies: u32 = |text| text.parse().ok().filter(|&dies| (1..=65_536).contains(&dies));
    /// Planes of a die, each of which reads by itself.
    planes: u32 = |text| text.parse().ok().filter(|&planes| (1..=16).contains(&planes)), 1;
    /// Channels between dies and controller.
    channels: u32 = |text| text.parse().ok().filter(|&channels| (1..=256).contains(&channels)), 1;
    /// Bytes per second of a channel; 0 for no limit.
    channel_rate: u64 = value::bytes, 0;
    /// What a die reads or programs at a time, in bytes.
    page: u64 = |text| value::bytes(text).filter(|page| page.is_power_of_two() && *page >= 4096);
    /// A die's read of a page, and its way through the controller.
    read: u64 = value::time_ns;
    /// A plane's programming of a page, one bit in a cell as long as there is SLC cache.
    program: u64 = value::time_ns;
    /// Room for data with one bit in a cell; 0 where it makes no difference.
    slc_cache: u64 = value::bytes, 0;
    /// A plane's programming of a page once the SLC cache is full; as counted for one page of data.
    program_full: u64 = value::time_ns, 0;
    /// Rate at which an idle drive empties its SLC cache, bytes per second.
    fold_rate: u64 = value::bytes, 0;
    /// How long the drive is idle before it does.
    fold_after: u64 = value::time_ns, 1_000_000_000;
    /// Bytes of the mapping table that the controller keeps by itself, four for each 4 KiB; 0 for all of it.
    mapping: u64 = value::bytes, 0;
    /// Host memory buffer that the drive would like; 0 for none.
    hmb: u64 = value::bytes, 0;
    /// A look into the mapping table in the host memory buffer.
    hmb_lookup: u64 = value::time_ns, 0;
    /// Data that may lie in the write buffer, in bytes.
    write_buffer: u64 = value::bytes;
    /// From the arrival of the data to the end of a buffered write.
    write_latency: u64 = value::time_ns;
    /// Temperature of the surroundings.
    ambient: u16 = value::kelvin;
    /// Temperature at the start.
    temperature: u16 = value::kelvin;
    /// WCTEMP.
    warning_temperature: u16 = value::kelvin;
    /// CCTEMP.
    critical_temperature: u16 = value::kelvin;
    /// TMT1: from here on the drive slows down lightly; 0 for never.
    throttle_light: u16 = value::kelvin, 0;
    /// TMT2: from here on it slows down heavily; 0 for never.
    throttle_heavy: u16 = value::kelvin, 0;
    /// The share of its speed that is left when it slows down lightly.
    share_light: f64 = value::share, 0.6;
    /// The share of its speed that is left when it slows down heavily.
    share_heavy: f64 = value::share, 0.25;
    /// Watts of the drive that does nothing.
    idle_power: f64 = value::positive, 0.0;
    /// Joules for each gigabyte read.
    read_energy: f64 = value::positive, 0.0;
    /// Joules for each gigabyte written.
    write_energy: f64 = value::positive, 0.0;
    /// Kelvin above the surroundings for each watt; 0 for a temperature that does not move.
    thermal_resistance: f64 = value::positive, 0.0;
    /// Time in which 63 % of a change of temperature has come about.
    thermal_time: u64 = value::time_ns, 60_000_000_000;
    /// How much warmer the second sensor, at the controller, is under full load.
    second_sensor: u16 = |text| text.strip_suffix('K')?.trim().parse().ok(), 0;

    /// Available spare in percent.
    spare: u8 = |text| text.parse().ok(), 100;
    /// Available spare threshold in percent.
    spare_threshold: u8 = |text| text.parse().ok(), 10;
    /// Percentage used.
    used: u8 = |text| text.parse().ok(), 0;
    /// Media errors before the program began.
    media_errors: u64 = value::number, 0;
    /// Bytes read before.
    read_before: u64 = value::bytes, 0;
    /// Bytes written before.
    written_before: u64 = value::bytes, 0;
    /// Power cycles, this one included.
    power_cycles: u64 = value::number, 1;
    /// Hours that it was on before.
    hours_before: u64 = value::number, 0;
    /// Of so many pieces of 64 KiB one cannot be read; 0 for none.
    bad_piece: u64 = value::number, 0;
    /// Each failed read costs so many percent of the spare.
    spare_per_error: u8 = |text| text.parse().ok(), 0;
}

/// A line of a model's file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model {model}, line {line}: {what}")]
pub struct ModelError {
    /// The model.
    pub model: String,
    /// The line, from 1; 0 where something is missing.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl Model {
    /// The names of all models.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// The model of this name; `None` where there is none.
    pub fn by_name(name: &str) -> Option<Result<Self, ModelError>> {
        FILES.iter().find(|(known, _)| *known == name).map(|(name, text)| Self::parse(name, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_that_comes_with_the_program_reads_well() {
        for name in Model::names() {
            let model = Model::by_name(name).unwrap().unwrap();
            assert!(!model.summary.is_empty() && model.warning_temperature < model.critical_temperature, "{name}");
        }
    }

    #[test]
    fn a_model_with_a_wrong_line_says_which() {
        let error = |text: &str| Model::parse("x", text).unwrap_err().to_string();
        assert_eq!(error("summary = a\nlinks = gen1x1"), "model x, line 2: no such key");
        assert_eq!(error("link = gen9x1"), "model x, line 1: not a value of this key");
        assert_eq!(error("link = gen1x1\nlink = gen1x1"), "model x, line 2: given twice");
        assert_eq!(error("# nothing"), "model x, line 0: missing: summary");
    }
}
