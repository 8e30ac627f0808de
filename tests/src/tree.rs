//! Trees that stand in for a machine: copied, patched, spoiled.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A copy of a tree that a test may change; removed at its end.
#[derive(Debug)]
pub struct Tree {
    directory: TempDir,
}

impl Tree {
    /// Copies a tree.
    ///
    /// # Panics
    /// When it cannot be copied.
    #[must_use]
    pub fn copy_of(tree: &Path) -> Self {
        // In memory where there is memory for it: some tests make a thousand of these.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.expect("a directory for the tree");
        copy(tree, directory.path());
        Self { directory }
    }

    /// Lays another tree over this one.
    pub fn overlay(&self, tree: &Path) {
        copy(tree, self.path());
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The same as text, for a command line.
    ///
    /// # Panics
    /// When it is not UTF-8.
    #[must_use]
    pub fn arg(&self) -> &str {
        self.path().to_str().expect("a path in UTF-8")
    }

    /// Where a file of the machine lies in the tree.
    #[must_use]
    pub fn place(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    /// Removes a file, link or directory.
    ///
    /// # Panics
    /// When it cannot.
    pub fn remove(&self, path: &str) {
        let place = self.place(path);
        let meta = fs::symlink_metadata(&place).unwrap_or_else(|error| panic!("{path}: {error}"));
        let removed = if meta.is_dir() { fs::remove_dir_all(&place) } else { fs::remove_file(&place) };
        removed.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Writes a file, in one step as seen by others.
    ///
    /// # Panics
    /// When it cannot.
    pub fn write(&self, path: &str, content: &[u8]) {
        let place = self.place(path);
        let parent = place.parent().expect("a file lies in a directory");
        fs::create_dir_all(parent).expect("a directory for the file");
        let mut new = tempfile::NamedTempFile::new_in(self.path()).expect("a file beside it");
        new.write_all(content).expect("it takes its content");
        new.persist(&place).expect("it takes its place");
    }

    /// Every file and link, as paths of the machine.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.path(), &mut |path| {
            let relative = path.strip_prefix(self.path()).expect("it lies in the tree");
            found.push(format!("/{}", relative.display()));
        });
        found.sort();
        found
    }
}

fn walk(directory: &Path, found: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).expect("a directory of the tree") {
        let entry = entry.expect("an entry of the tree");
        if entry.file_type().expect("its type").is_dir() {
            walk(&entry.path(), found);
        } else {
            found(&entry.path());
        }
    }
}

fn copy(from: &Path, to: &Path) {
    walk(from, &mut |path| {
        let target = to.join(path.strip_prefix(from).expect("it lies in the tree"));
        fs::create_dir_all(target.parent().expect("a directory")).expect("a directory of the copy");
        let _ = fs::remove_file(&target);
        if path.is_symlink() {
            symlink(fs::read_link(path).expect("a link"), &target).expect("a link of the copy");
        } else {
            fs::copy(path, &target).expect("a file of the copy");
        }
    });
}
