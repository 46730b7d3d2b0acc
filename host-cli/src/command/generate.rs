//! `nvmetal generate`: shell completions and manual pages, made from the command tree for the packages.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::{FileContext, Result};
use crate::exit::Exit;
use crate::manual;
use crate::output::Output;

/// What to write.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Completions for a shell, to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// A manual page for nvmetal and one for each command
    Man {
        /// The directory for them
        directory: PathBuf,
    },
}

/// Writes it.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    match &arguments.what {
        What::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "nvmetal", &mut text);
            out.raw(&text)?;
        }
        What::Man { directory } => {
            std::fs::create_dir_all(directory).file("create", directory)?;
            manual::write(directory).file("write to", directory)?;
        }
    }
    Ok(Exit::Pass)
}
