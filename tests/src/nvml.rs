//! The fake driver's library: where it is, under the name that the real one has, and how it is told what to say.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// The fake library in a directory of its own, under NVML's name.
#[derive(Debug)]
pub struct FakeNvml {
    directory: TempDir,
}

const NAME: &str = "libnvidia-ml.so.1";

impl Default for FakeNvml {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeNvml {
    /// A copy of the library that was built beside the binary.
    ///
    /// # Panics
    /// When it was not built.
    #[must_use]
    pub fn new() -> Self {
        Self::without(&[])
    }

    /// The same without some of its symbols, as an older driver's: their names are overwritten where the linker looks
    /// them up.
    ///
    /// # Panics
    /// When it was not built, or does not have the symbol.
    #[must_use]
    pub fn without(symbols: &[&str]) -> Self {
        let mut bytes =
            fs::read(built()).expect("the fake library is built: cargo build -p plimsoll-fake-nvml");
        for symbol in symbols {
            let name: Vec<u8> = [&[0], symbol.as_bytes(), &[0]].concat();
            let places: Vec<usize> = bytes
                .windows(name.len())
                .enumerate()
                .filter(|(_, window)| *window == name)
                .map(|(at, _)| at)
                .collect();
            assert!(!places.is_empty(), "the fake library has no {symbol}");
            for place in places {
                *bytes.get_mut(place + 1).expect("it lies in the file") = b'x';
            }
        }
        // Beside the binary: memory file systems may forbid to run what lies in them.
        let beside = crate::binary().parent().map_or_else(std::env::temp_dir, Path::to_path_buf);
        let directory = tempfile::tempdir_in(beside).expect("a directory for the library");
        fs::write(directory.path().join(NAME), bytes).expect("a copy of the library");
        Self { directory }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }

    /// Writes a scenario beside it.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn scenario(&self, text: &str) -> PathBuf {
        let path = self.directory.path().join("scenario.toml");
        fs::write(&path, text).expect("a scenario");
        path
    }
}

fn built() -> PathBuf {
    let binary = crate::binary();
    binary.parent().unwrap_or_else(|| Path::new("/")).join("libplimsoll_fake_nvml.so")
}

/// Tells the library what to say, by files of which the later go over the earlier.
pub fn say<'c>(command: &'c mut Command, library: &FakeNvml, scenario: &[PathBuf]) -> &'c mut Command {
    let files: Vec<String> = scenario.iter().map(|file| file.display().to_string()).collect();
    command.arg("--nvml").arg(library.path()).env("PLIMSOLL_FAKE_NVML", files.join(":"))
}

/// Runs a check with the library to its end.
pub(crate) fn run_with(
    mut command: Command,
    library: &FakeNvml,
    scenario: &[PathBuf],
    arguments: &[String],
    more: &[&str],
) -> Output {
    say(&mut command, library, scenario).args(arguments).args(more).output().expect("the binary starts")
}
