//! The three macros that turn a table of rows into types. See [`crate::describe`] for what they are for.
#![forbid(unsafe_code)]

/// A wire structure from a table of rows.
///
/// Each row is `OFFSET name: Type = shape, "Label";`. Types are `u8`, the little-endian numbers of `zerocopy`, bit
/// fields made by `bits!`, codes made by `codes!`, other structures, and arrays of these. Gaps are rows, too: the
/// table has no hole, and a wrong offset or size does not compile. `summary function` behind the id names a function
/// that says the whole in one line.
#[macro_export]
macro_rules! structure {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident: $size:literal, $id:literal $(, summary $summary:path)? {
            $(
                $(#[doc = $fdoc:literal])+
                $offset:literal $field:ident: $ty:ty = $shape:expr, $label:literal;
            )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(
            Clone, Copy, PartialEq, Eq,
            $crate::describe::__zerocopy::FromBytes,
            $crate::describe::__zerocopy::IntoBytes,
            $crate::describe::__zerocopy::Immutable,
            $crate::describe::__zerocopy::KnownLayout,
            $crate::describe::__zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $( $(#[doc = $fdoc])+ pub $field: $ty, )+
        }

        const _: () = {
            assert!(::core::mem::size_of::<$name>() == $size, "the size of the structure is not the specified one");
            $( assert!(
                ::core::mem::offset_of!($name, $field) == $offset,
                concat!("wrong offset: ", stringify!($field)),
            ); )+
        };

        impl $crate::describe::Wire for $name {
            const ELEMENT: usize = $size;
        }

        impl Default for $name {
            /// All bytes zero.
            fn default() -> Self {
                $crate::describe::__zerocopy::FromZeros::new_zeroed()
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                write!(f, "{} {{\n{}}}", stringify!($name), $crate::describe::Describe::view(self).text())
            }
        }

        impl $crate::describe::Describe for $name {
            const DESCRIPTOR: $crate::describe::Descriptor = {
                #[allow(unused_imports, reason = "not every table uses every shape")]
                use $crate::describe::shape::*;
                $crate::describe::Descriptor {
                    id: $id,
                    doc: concat!($($doc, "\n"),+),
                    size: $size,
                    fields: &[$( {
                        let shape = $shape;
                        let all = ::core::mem::size_of::<$ty>();
                        let size = if shape.is_whole() { all } else { <$ty as $crate::describe::Wire>::ELEMENT };
                        $crate::describe::Field {
                            id: stringify!($field),
                            label: $label,
                            doc: concat!($($fdoc, "\n"),+),
                            offset: $offset,
                            size,
                            repeat: all / size,
                            shape,
                        }
                    } ),+],
                    summary: {
                        #[allow(unused_mut, unused_assignments, reason = "only some structures have a summary")]
                        let mut summary: Option<$crate::describe::Summary> = None;
                        $( summary = Some($summary); )?
                        summary
                    },
                }
            };
        }
    };
}

/// A bit field from a table of rows.
///
/// The head is `pub struct Name(u16 as U16)`: the number that people see and the little-endian type that lies in
/// memory (`u8 as u8` for one byte). Each row is `LOW:WIDTH name: Type = shape, "Label";`, from the lowest bit up and
/// without a hole: reserved bits are rows whose name begins with `__`. Types are `bool`, unsigned integers, and types
/// with `from_bits` and `into_bits` (`codes!`, [`ZeroBasedU16`](crate::number::ZeroBasedU16)).
#[macro_export]
macro_rules! bits {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident($base:ident as $repr:ident) {
            $(
                $(#[doc = $fdoc:literal])*
                $low:literal : $width:literal $field:ident: $ty:ident = $shape:expr, $label:literal;
            )+
        }
    ) => {
        $crate::bits!(@type [$($doc)+] $name $base $repr { $([$($fdoc)*] $width $field $ty)+ });

        impl $name {
            /// The groups of bits from the lowest up.
            pub const PARTS: &'static [$crate::describe::Part] = {
                #[allow(unused_imports, reason = "not every table uses every shape")]
                use $crate::describe::shape::*;
                &[$( $crate::describe::Part {
                    id: stringify!($field),
                    label: $label,
                    doc: concat!($($fdoc, "\n"),*),
                    low: $low,
                    width: $width,
                    shape: $shape,
                } ),+]
            };
        }

        const _: () = {
            let parts = $name::PARTS;
            let mut low = 0;
            let mut i = 0;
            while i < parts.len() {
                assert!(parts[i].low as u32 == low, "a bit position is not the sum of the widths below it");
                low += parts[i].width as u32;
                i += 1;
            }
            assert!(low == $base::BITS, "the widths do not add up");
        };

        impl $crate::describe::Wire for $name {
            const ELEMENT: usize = ::core::mem::size_of::<$base>();
        }

        impl $crate::number::BitValue for $name {
            const WIDTH: u32 = $base::BITS;
            fn to_raw(self) -> u64 {
                u64::from(self.into_bits())
            }
            fn from_raw(raw: u64) -> Self {
                Self::from_bits(raw as $base)
            }
        }
    };
    (@type [$($doc:literal)+] $name:ident u8 u8 { $([$($fdoc:literal)*] $width:tt $field:ident $ty:ident)+ }) => {
        $(#[doc = $doc])+
        #[::bitfield_struct::bitfield(u8, conversion = false)]
        #[derive(
            PartialEq, Eq,
            $crate::describe::__zerocopy::FromBytes,
            $crate::describe::__zerocopy::IntoBytes,
            $crate::describe::__zerocopy::Immutable,
            $crate::describe::__zerocopy::KnownLayout,
            $crate::describe::__zerocopy::Unaligned,
        )]
        pub struct $name {
            $( $(#[doc = $fdoc])* #[bits($width)] pub $field: $ty, )+
        }

        impl $name {
            /// The field with these bits.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The bits.
            pub const fn into_bits(self) -> u8 {
                self.0
            }
        }
    };
    (@type [$($doc:literal)+] $name:ident $base:ident $repr:ident {
        $([$($fdoc:literal)*] $width:tt $field:ident $ty:ident)+
    }) => {
        $(#[doc = $doc])+
        #[::bitfield_struct::bitfield(
            $base,
            repr = $crate::describe::__zerocopy::little_endian::$repr,
            from = $crate::describe::__zerocopy::little_endian::$repr::new,
            into = $crate::describe::__zerocopy::little_endian::$repr::get,
            conversion = false
        )]
        #[derive(
            PartialEq, Eq,
            $crate::describe::__zerocopy::FromBytes,
            $crate::describe::__zerocopy::IntoBytes,
            $crate::describe::__zerocopy::Immutable,
            $crate::describe::__zerocopy::KnownLayout,
            $crate::describe::__zerocopy::Unaligned,
        )]
        pub struct $name {
            $( $(#[doc = $fdoc])* #[bits($width)] pub $field: $ty, )+
        }

        impl $name {
            /// The field with these bits.
            pub const fn from_bits(bits: $base) -> Self {
                Self($crate::describe::__zerocopy::little_endian::$repr::new(bits))
            }

            /// The bits.
            pub const fn into_bits(self) -> $base {
                self.0.get()
            }
        }
    };
}

/// An open enumeration from a table of rows.
///
/// The head is `pub struct Name(u8, 8)`: storage and width in bits. Each row is `VALUE NAME "name for people";` with its
/// documentation. A value that has no row is still a value.
#[macro_export]
macro_rules! codes {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident($base:ident, $width:literal) {
            $(
                $(#[doc = $cdoc:literal])+
                $value:literal $code:ident $label:literal;
            )+
        }
    ) => {
        $crate::codes!(@type [$($doc)+] $name $base);

        impl $name {
            $( $(#[doc = $cdoc])+ pub const $code: Self = Self($value); )+

            /// The values that have a name.
            pub const MEANINGS: &'static [$crate::describe::Meaning] = &[
                $( $crate::describe::Meaning { value: $value, name: $label, doc: concat!($($cdoc, "\n"),+) } ),+
            ];

            /// The value with these bits; bits above the width are ignored.
            pub const fn from_bits(bits: $base) -> Self {
                Self(bits & ($base::MAX >> ($base::BITS - $width)))
            }

            /// The bits.
            pub const fn into_bits(self) -> $base {
                self.0
            }

            /// The name, where the value is a known one.
            pub fn name(self) -> Option<&'static str> {
                Self::MEANINGS.iter().find(|m| m.value == u64::from(self.0)).map(|m| m.name)
            }
        }

        impl $crate::describe::Wire for $name {
            const ELEMENT: usize = ::core::mem::size_of::<$base>();
        }

        impl $crate::number::BitValue for $name {
            const WIDTH: u32 = $width;
            fn to_raw(self) -> u64 {
                u64::from(self.0)
            }
            fn from_raw(raw: u64) -> Self {
                Self::from_bits(raw as $base)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({:02X}h)", self.0),
                    None => write!(f, "{:02X}h", self.0),
                }
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };    (@type [$($doc:literal)+] $name:ident u8) => {
        $(#[doc = $doc])+
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            $crate::describe::__zerocopy::FromBytes,
            $crate::describe::__zerocopy::IntoBytes,
            $crate::describe::__zerocopy::Immutable,
            $crate::describe::__zerocopy::KnownLayout,
            $crate::describe::__zerocopy::Unaligned,
        )]
        #[repr(transparent)]
        pub struct $name(u8);
    };
    (@type [$($doc:literal)+] $name:ident $base:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name($base);
    };
}
