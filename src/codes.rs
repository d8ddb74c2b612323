//! One table per enumeration: the Rust enum, the `WFMM_*` constants and the check of a caller's number from one list.
//!
//! The header and the Fortran module are generated from the same lists (`tests/generated`).

/// `codes! { enum Name { Variant = 3 => WFMM_NAME_VARIANT, … } }`
macro_rules! codes {
    ($( $(#[$meta:meta])* enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $value:literal => $constant:ident, )+ } )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum $name { $( $(#[$vmeta])* $variant = $value, )+ }

        $( $(#[$vmeta])* pub const $constant: i32 = $value; )+

        impl $name {
            /// Every code and its name in the C API.
            pub const ALL: &'static [(Self, &'static str)] = &[$( (Self::$variant, stringify!($constant)), )+];

            /// Its name in the C API.
            pub fn name(self) -> &'static str {
                Self::ALL.iter().find(|(v, _)| *v == self).map_or("", |(_, name)| name)
            }

            /// The code of a caller's number; `None` where there is none.
            pub fn from_code(code: i32) -> Option<Self> {
                Self::ALL.iter().map(|(v, _)| *v).find(|v| *v as i32 == code)
            }
        }
    )+ };
}
