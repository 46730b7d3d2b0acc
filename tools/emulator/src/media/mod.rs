//! What the data lies in.
//!
//! A namespace is a row of bytes; logical blocks are the namespace's business. `Sparse::read` hands out pieces, not
//! bytes, so that what is constant or nothing is never copied.
#![forbid(unsafe_code)]

mod sparse;

pub(crate) use sparse::{Piece, Sparse};

/// The data of a namespace.
#[derive(Debug)]
pub(crate) enum Media {
    /// Memory, taken page by page as it is written.
    Sparse(Sparse),
    /// None: nothing is kept and nothing is moved.
    Null,
}
