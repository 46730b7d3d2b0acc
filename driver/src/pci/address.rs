//! The address of a PCI function: `domain:bus:device.function`.
//!
//! The domain is 32 bits wide here. The PCI firmware specification knows 16 bits, but Linux numbers the domains that it
//! makes up itself (Intel VMD from 10000h, Hyper-V anywhere) above that, and an address cut to 16 bits is not a wrong
//! address but *another drive's* address. So it is parsed from 4 to 8 hexadecimal digits, kept whole and printed with
//! as many digits as it has, at least four, the way `/sys/bus/pci/devices` spells it.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

/// The greatest device number of a bus: the field has five bits.
const DEVICE_MAX: u8 = 0x1f;
/// The greatest function number of a device: the field has three bits.
const FUNCTION_MAX: u8 = 7;

/// Where a PCI function is: domain, bus, device and function.
///
/// It orders as the four numbers do, and prints as `/sys/bus/pci/devices` names it: `0000:03:00.0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl PciAddress {
    /// The address of these four numbers; `None` when `device` is above 1Fh or `function` above 7.
    pub const fn new(domain: u32, bus: u8, device: u8, function: u8) -> Option<Self> {
        if device > DEVICE_MAX || function > FUNCTION_MAX {
            return None;
        }
        Some(Self { domain, bus, device, function })
    }

    /// The PCI domain (segment group), all 32 bits of it.
    pub const fn domain(self) -> u32 {
        self.domain
    }

    /// The bus number.
    pub const fn bus(self) -> u8 {
        self.bus
    }

    /// The device number, 0 to 1Fh.
    pub const fn device(self) -> u8 {
        self.device
    }

    /// The function number, 0 to 7.
    pub const fn function(self) -> u8 {
        self.function
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function);
        f.pad(&text)
    }
}

impl fmt::Debug for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PciAddress({self})")
    }
}

impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for PciAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |fault| AddressError { text: text.to_owned(), fault };
        let (rest, function) = text.rsplit_once('.').ok_or_else(|| error(AddressFault::Shape))?;
        let (rest, device) = rest.rsplit_once(':').ok_or_else(|| error(AddressFault::Shape))?;
        let (domain, bus) = match rest.rsplit_once(':') {
            Some((domain, bus)) => (Some(domain), bus),
            None => (None, rest),
        };
        let domain = match domain {
            None => 0,
            Some(digits) => hexadecimal(digits, 4..=8).ok_or_else(|| error(AddressFault::Domain))?,
        };
        let bus = hexadecimal(bus, 2..=2).ok_or_else(|| error(AddressFault::Bus))? as u8;
        let device = hexadecimal(device, 2..=2).ok_or_else(|| error(AddressFault::DeviceDigits))? as u8;
        if device > DEVICE_MAX {
            return Err(error(AddressFault::Device { device }));
        }
        let function = hexadecimal(function, 1..=1)
            .filter(|&function| function <= u32::from(FUNCTION_MAX))
            .ok_or_else(|| error(AddressFault::Function))? as u8;
        Ok(Self { domain, bus, device, function })
    }
}

/// The value of a text that is nothing but hexadecimal digits (no sign, no `0x`), as many as `digits` allows.
fn hexadecimal(text: &str, digits: core::ops::RangeInclusive<usize>) -> Option<u32> {
    if !digits.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(text, 16).ok()
}

/// A text that is not the address of a PCI function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a PCI address: {fault}")]
pub struct AddressError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub fault: AddressFault,
}

/// What is wrong with a text that should be a PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// It does not have the parts of an address.
    #[error("expected domain:bus:device.function or bus:device.function, as in 0000:03:00.0")]
    Shape,
    /// The domain is not 4 to 8 hexadecimal digits.
    #[error("the domain has 4 to 8 hexadecimal digits")]
    Domain,
    /// The bus is not two hexadecimal digits.
    #[error("the bus has two hexadecimal digits")]
    Bus,
    /// The device is not two hexadecimal digits.
    #[error("the device has two hexadecimal digits")]
    DeviceDigits,
    /// The device number is greater than the bus has.
    #[error("device {device:02x}h is above 1fh, the last of a bus")]
    Device {
        /// The number that was given.
        device: u8,
    },
    /// The function is not one digit from 0 to 7.
    #[error("the function is one digit from 0 to 7")]
    Function,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> PciAddress {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn fault(text: &str) -> AddressFault {
        text.parse::<PciAddress>().expect_err(text).fault
    }

    #[test]
    fn d23_a_wide_domain_is_kept_whole() {
        for (text, domain) in [("10001:80:05.0", 0x10001), ("20000:70:00.0", 0x20000), ("5d0505:01:00.0", 0x5d0505)] {
            let address = parsed(text);
            assert_eq!(address.domain(), domain);
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(parsed("ffffffff:00:00.0").domain(), u32::MAX);
        assert_ne!(parsed("20000:70:00.0"), parsed("0000:70:00.0"));
    }

    #[test]
    fn d23_a_domain_is_printed_with_at_least_four_digits() {
        assert_eq!(parsed("03:00.0").to_string(), "0000:03:00.0");
        assert_eq!(parsed("0001:01:00.0").to_string(), "0001:01:00.0");
        assert_eq!(parsed("00000001:01:00.0").to_string(), "0001:01:00.0");
    }

    #[test]
    fn d23_a_domain_of_the_wrong_length_is_refused() {
        assert_eq!(fault("000:03:00.0"), AddressFault::Domain);
        assert_eq!(fault("000000001:03:00.0"), AddressFault::Domain);
        assert_eq!(fault(":03:00.0"), AddressFault::Domain);
    }

    #[test]
    fn d24_bus_and_device_are_hexadecimal_and_a_missing_domain_is_zero() {
        assert_eq!(PciAddress::new(0, 0x3e, 0, 0), Some(parsed("3e:00.0")));
        assert_eq!(PciAddress::new(0, 0xb3, 0, 1), Some(parsed("b3:00.1")));
        assert_eq!(PciAddress::new(1, 1, 0, 0), Some(parsed("0001:01:00.0")));
        assert_eq!(parsed("B3:1F.7"), parsed("0000:b3:1f.7"));
    }

    #[test]
    fn d24_a_device_above_1fh_and_a_function_above_7_are_refused() {
        assert_eq!(fault("00:20.0"), AddressFault::Device { device: 0x20 });
        assert_eq!(fault("00:1f.8"), AddressFault::Function);
        assert_eq!(fault("00:1f.a"), AddressFault::Function);
        assert_eq!(PciAddress::new(0, 0, 0x20, 0), None);
        assert_eq!(PciAddress::new(0, 0, 0, 8), None);
    }

    #[test]
    fn what_only_looks_like_an_address_is_refused() {
        assert_eq!(fault(""), AddressFault::Shape);
        assert_eq!(fault("nvme0"), AddressFault::Shape);
        assert_eq!(fault("03.0"), AddressFault::Shape);
        assert_eq!(fault("0000:03:00"), AddressFault::Shape);
        assert_eq!(fault("+3:00.0"), AddressFault::Bus);
        assert_eq!(fault("0x03:00.0"), AddressFault::Bus);
        assert_eq!(fault("03:+0.0"), AddressFault::DeviceDigits);
        assert_eq!(fault("03:00.00"), AddressFault::Function);
        assert_eq!(fault("1:0000:03:00.0"), AddressFault::Domain);
    }

    #[test]
    fn an_error_says_what_was_given_and_what_is_expected() {
        let error = "00:20.0".parse::<PciAddress>().unwrap_err();
        assert_eq!(error.to_string(), "`00:20.0` is not a PCI address: device 20h is above 1fh, the last of a bus");
    }

    proptest! {
        #[test]
        fn every_address_survives_being_printed_and_parsed(domain: u32, bus: u8, device in 0..=0x1fu8, function in 0..=7u8) {
            let address = PciAddress::new(domain, bus, device, function).unwrap();
            prop_assert_eq!(address.to_string().parse::<PciAddress>(), Ok(address));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = text.parse::<PciAddress>();
        }
    }
}
