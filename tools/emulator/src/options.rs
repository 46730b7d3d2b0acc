//! What a person writes to choose and change an emulated drive: `emulated:ideal,link=gen1x1,fault=read-error@100`.
#![forbid(unsafe_code)]

use crate::controller::memory_buffer::MOST_BYTES;
use crate::fault::Fault;
use crate::link::PcieLink;
use crate::model::{ClockKind, Model};
use crate::value;

/// A drive to be emulated: a model and what is changed of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The text that it was read from, without `emulated:`.
    pub text: String,
    /// The model, with the capacity, block size, temperature and clock asked for.
    pub model: Model,
    /// The link that was trained; by default the common best of both ends.
    pub trained: Option<PcieLink>,
    /// Bits set in SMART's critical warning besides the emulator's own.
    pub critical_warning: u8,
    /// The temperature, held at this many kelvin; by default the model's own course.
    pub temperature_held: Option<u16>,
    /// Whether the drive behaves as if every block had been written.
    pub written: bool,
    /// After so many commands the device is gone.
    pub removed_at: Option<u64>,
    /// Whether data is moved at all; without, only time passes.
    pub data: bool,
    /// Correctable errors that the link has, one after every 64 MiB.
    pub link_errors: u8,
    /// Faults planned.
    pub faults: Vec<Fault>,
    /// MDTS: largest transfer, 2^MDTS pages; 0 for no limit.
    pub mdts: u8,
    /// I/O queue pairs that the controller has.
    pub queues: u16,
    /// Bytes of metadata of each block.
    pub metadata_bytes: u16,
    /// Whether the metadata follows the data of each block, instead of lying in a place of its own.
    pub metadata_extended: bool,
    /// Whether it has shadow doorbells (Doorbell Buffer Config).
    pub shadow_doorbells: bool,
    /// Bytes of its controller memory buffer; 0 for none.
    pub memory_buffer_bytes: u64,
    /// Host memory buffer that the controller would like, in bytes; 0 for none.
    pub hmb_bytes: u64,
    /// The least host memory buffer that is of use to it, in bytes.
    pub hmb_min_bytes: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// Why the text could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// There is no such model.
    #[error("no emulated model `{name}`; there are: {known}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There is no such option.
    #[error("no option `{name}` of the emulator; there are: {known}")]
    UnknownOption {
        /// What was asked for.
        name: String,
        /// The options there are, with their form.
        known: String,
    },
    /// The option does not take this value.
    #[error("`{given}` is no value of the emulator's option `{name}`: it takes {form}")]
    BadValue {
        /// The option.
        name: String,
        /// What was given.
        given: String,
        /// What it takes.
        form: &'static str,
    },
    /// The option was given more than once.
    #[error("the emulator's option `{name}` is given twice; only `fault` may be")]
    Twice {
        /// The option.
        name: String,
    },
    /// A model's own file is wrong.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
}

/// An option: its name, what it takes, what it does, and how it is set.
struct OptionRow {
    name: &'static str,
    form: &'static str,
    what: &'static str,
    set: fn(&mut Options, &str) -> Option<()>,
}

/// All options, in the order in which they are listed.
#[rustfmt::skip]
const OPTIONS: &[OptionRow] = &[
    OptionRow { name: "link", form: "genGxW, as gen1x1", what: "the link that was trained, below what both ends can do",
        set: |o, v| { o.trained = Some(value::link(v)?); Some(()) } },
    OptionRow { name: "slot", form: "genGxW, as gen2x4", what: "what the slot can do",
        set: |o, v| { o.model.slot = value::link(v)?; Some(()) } },
    OptionRow { name: "payload", form: "128, 256, 512 .. 4096", what: "payload size of the path in bytes",
        set: |o, v| { o.model.payload = v.parse().ok().filter(|p: &u32| p.is_power_of_two() && (128..=4096).contains(p))?; Some(()) } },
    OptionRow { name: "read-request", form: "128, 256, 512 .. 4096", what: "read request size of the path in bytes",
        set: |o, v| { o.model.read_request = v.parse().ok().filter(|p: &u32| p.is_power_of_two() && (128..=4096).contains(p))?; Some(()) } },
    OptionRow { name: "above", form: "genGxW, as gen3x1", what: "the slowest link between slot and processor",
        set: |o, v| { o.model.above = Some(value::link(v)?); Some(()) } },
    OptionRow { name: "root-port", form: "a share, as 0.9", what: "what the host's root port takes of the link, both ways",
        set: |o, v| { o.model.root_port = value::share(v)?; o.model.root_port_out = o.model.root_port; Some(()) } },
    OptionRow { name: "host", form: "a time, as 15us", what: "the host's own work for a command, on each queue",
        set: |o, v| { o.model.host = value::time_ns(v)?; Some(()) } },
    OptionRow { name: "ambient", form: "degrees Celsius, or kelvin as 300K", what: "temperature of the surroundings",
        set: |o, v| { o.model.ambient = value::kelvin(v)?; Some(()) } },
    OptionRow { name: "link-errors", form: "0 to 5", what: "correctable errors of the link, one after every 64 MiB",
        set: |o, v| { o.link_errors = v.parse().ok().filter(|&n| n <= 5)?; Some(()) } },
    OptionRow { name: "data", form: "yes or no", what: "whether data is moved; without, only time passes",
        set: |o, v| { o.data = value::yes_no(v)?; Some(()) } },
    OptionRow { name: "critical-warning", form: "bits, as 4 or 0x0c", what: "bits of SMART's critical warning",
        set: |o, v| { o.critical_warning = u8::try_from(value::number(v)?).ok()?; Some(()) } },
    OptionRow { name: "temperature", form: "degrees Celsius, or kelvin as 340K", what: "the composite temperature, held there",
        set: |o, v| { o.temperature_held = Some(value::kelvin(v)?); Some(()) } },
    OptionRow { name: "written", form: "yes or no", what: "whether the drive behaves as filled",
        set: |o, v| { o.written = value::yes_no(v)?; Some(()) } },
    OptionRow { name: "fault", form: crate::fault::FORM, what: "something goes wrong, from the Nth command on it",
        set: |o, v| { o.faults.push(Fault::parse(v)?); Some(()) } },
    OptionRow { name: "removed", form: "a number of commands", what: "the device vanishes after so many commands (removed@N)",
        set: |o, v| { o.removed_at = Some(value::number(v)?); Some(()) } },
    OptionRow { name: "capacity", form: "a size, as 4TB or 512MiB", what: "capacity of the first namespace",
        set: |o, v| { o.model.capacity = value::bytes(v).filter(|&b| b >= 1 << 20)?; Some(()) } },
    OptionRow { name: "blocks", form: "a number of logical blocks", what: "capacity in logical blocks",
        set: |o, v| { o.model.capacity = value::number(v)?.checked_mul(u64::from(o.model.lba)).filter(|&b| b >= 4096)?; Some(()) } },
    OptionRow { name: "lba", form: "512 or 4096", what: "bytes of a logical block",
        set: |o, v| { o.model.lba = v.parse().ok().filter(|&b| b == 512 || b == 4096)?; Some(()) } },
    OptionRow { name: "metadata", form: "0, or 8 to 64 bytes in multiples of 8", what: "metadata of each block",
        set: |o, v| { o.metadata_bytes = v.parse().ok().filter(|&m: &u16| m <= 64 && m.is_multiple_of(8))?; Some(()) } },
    OptionRow { name: "metadata-extended", form: "yes or no", what: "whether metadata follows each block's data, not in a place of its own",
        set: |o, v| { o.metadata_extended = value::yes_no(v)?; Some(()) } },
    OptionRow { name: "mdts", form: "0 to 20", what: "largest transfer, 2^MDTS pages of 4 KiB; 0 for no limit",
        set: |o, v| { o.mdts = v.parse().ok().filter(|&m| m <= 20)?; Some(()) } },
    OptionRow { name: "queues", form: "1 to 65534", what: "I/O queue pairs",
        set: |o, v| { o.queues = v.parse().ok().filter(|q| (1..=65_534).contains(q))?; Some(()) } },
    OptionRow { name: "shadow-doorbells", form: "yes or no", what: "whether it has the Doorbell Buffer Config command",
        set: |o, v| { o.shadow_doorbells = value::yes_no(v)?; Some(()) } },
    OptionRow { name: "cmb", form: "a size from 4KiB to 64MiB, or 0", what: "controller memory buffer, for submission queues",
        set: |o, v| { o.memory_buffer_bytes = value::bytes(v).filter(|&b| b <= MOST_BYTES && b.is_multiple_of(4096))?; Some(()) } },
    OptionRow { name: "hmb", form: "a size in multiples of 4KiB, as 64MiB", what: "host memory buffer that the drive would like",
        set: |o, v| { o.hmb_bytes = value::bytes(v).filter(|&b| whole_pages(b))?; Some(()) } },
    OptionRow { name: "hmb-min", form: "a size in multiples of 4KiB, as 8MiB", what: "the least host memory buffer that is of use to it",
        set: |o, v| { o.hmb_min_bytes = value::bytes(v).filter(|&b| whole_pages(b))?; Some(()) } },
    OptionRow { name: "clock", form: "virtual or real", what: "the time it lives in",
        set: |o, v| { o.model.clock = match v { "virtual" => ClockKind::Virtual, "real" => ClockKind::Real, _ => return None }; Some(()) } },
    OptionRow { name: "seed", form: "a number", what: "seed of everything random",
        set: |o, v| { o.seed = value::number(v)?; Some(()) } },
];

/// Whether so many bytes are whole units of 4 KiB that fit the controller's fields.
fn whole_pages(bytes: u64) -> bool {
    bytes.is_multiple_of(4096) && u32::try_from(bytes >> 12).is_ok()
}

impl Options {
    /// Reads `MODEL[,option=value...]`; an empty text is the model `ideal`, and options alone change that.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
        let name = match parts.peek() {
            Some(first) if !first.contains(['=', '@']) => parts.next().unwrap_or("ideal"),
            _ => "ideal",
        };
        let model = Model::by_name(name).ok_or_else(|| OptionsError::UnknownModel {
            name: name.to_owned(),
            known: Model::names().collect::<Vec<_>>().join(", "),
        })??;
        let mut options = Self {
            text: text.to_owned(),
            model,
            trained: None,
            critical_warning: 0,
            temperature_held: None,
            written: true,
            removed_at: None,
            data: true,
            link_errors: 0,
            faults: Vec::new(),
            metadata_bytes: 0,
            metadata_extended: false,
            mdts: 9,
            queues: 64,
            shadow_doorbells: false,
            memory_buffer_bytes: 0,
            hmb_bytes: 0,
            hmb_min_bytes: 0,
            seed: 1,
        };
        let mut given = Vec::new();
        for part in parts {
            let name = options.set(part)?;
            // Faults may be several; of everything else one would silently win.
            if name != "fault" && given.contains(&name) {
                return Err(OptionsError::Twice { name: name.to_owned() });
            }
            given.push(name);
        }
        if options.hmb_min_bytes > options.hmb_bytes {
            return Err(OptionsError::BadValue {
                name: "hmb-min".to_owned(),
                given: format!("{} bytes", options.hmb_min_bytes),
                form: "no more than hmb",
            });
        }
        Ok(options)
    }

    /// Every option: its name, what it takes, what it does.
    pub fn table() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        OPTIONS.iter().map(|row| (row.name, row.form, row.what))
    }

    /// The link in use: what was trained, or the common best of both ends.
    pub fn link(&self) -> PcieLink {
        let able = self.model.link.common(self.model.slot);
        // What a model's link trained to is a matter of this slot: a slower one limits it further.
        self.trained.unwrap_or_else(|| self.model.trained.map_or(able, |trained| trained.common(able)))
    }

    /// Sets one option; its name.
    fn set(&mut self, part: &str) -> Result<&'static str, OptionsError> {
        // `removed@N` reads like a fault and is written like one.
        let (name, given) = part
            .split_once('=')
            .or_else(|| part.split_once('@').filter(|(name, _)| *name == "removed"))
            .unwrap_or((part, ""));
        let (name, given) = (name.trim(), given.trim());
        let row = OPTIONS.iter().find(|row| row.name == name).ok_or_else(|| OptionsError::UnknownOption {
            name: name.to_owned(),
            known: OPTIONS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })?;
        (row.set)(self, given).ok_or_else(|| OptionsError::BadValue {
            name: name.to_owned(),
            given: given.to_owned(),
            form: row.form,
        })?;
        Ok(row.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_the_emulator_lists_every_model_option_and_fault() {
        let page = include_str!("../../../docs/emulator.md");
        let faults = FaultKind::ALL.iter().map(|(_, name, _)| *name);
        for name in Options::table().map(|(name, ..)| name).chain(Model::names()).chain(faults) {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
    use crate::fault::FaultKind;

    #[test]
    fn the_text_of_a_person_becomes_a_drive() {
        let options = Options::parse(
            "ideal,link=gen1x1,critical-warning=4,temperature=95,fault=read-error@100,written=no,removed@1000",
        )
        .unwrap();
        assert_eq!(options.link(), PcieLink { generation: 1, width: 1 });
        assert_eq!((options.critical_warning, options.temperature_held), (4, Some(368)));
        assert_eq!((options.written, options.removed_at), (false, Some(1000)));
        assert_eq!((options.faults[0].kind, options.faults[0].at), (FaultKind::ReadError, 100));
        assert_eq!(Options::parse("").unwrap().model.name, "ideal");
        assert_eq!(Options::parse("lba=4096,blocks=1000").unwrap().model.capacity, 4_096_000);
        assert_eq!(Options::parse("null").unwrap().model.clock, ClockKind::Real);
    }

    #[test]
    fn what_is_not_known_is_answered_with_what_is() {
        let error = Options::parse("ideal,lnik=gen1x1").unwrap_err().to_string();
        assert!(error.starts_with("no option `lnik`") && error.contains("link, slot"), "{error}");
        let error = Options::parse("idael").unwrap_err().to_string();
        assert!(error.contains("`idael`") && error.contains("ideal, null"), "{error}");
        let error = Options::parse("link=fast").unwrap_err().to_string();
        assert!(error.contains("`fast`") && error.contains("genGxW"), "{error}");
        assert!(Options::parse("fault=nonsense@1").is_err());
        let error = Options::parse("queues=4,queues=8").unwrap_err().to_string();
        assert!(error.contains("`queues` is given twice"), "{error}");
        assert_eq!(Options::parse("fault=timeout@1,fault=timeout@5").unwrap().faults.len(), 2);
        assert!(Options::parse("hmb=8MiB,hmb-min=16MiB").is_err());
    }
}
