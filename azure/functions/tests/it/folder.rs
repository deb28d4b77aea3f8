//! Folders for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bindpost_azure_functions::app::App;
use bindpost_azure_functions::problem::AppError;

/// A folder that is gone when the test is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("bindpost-app-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A Python app with these files.
    pub(crate) fn app(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new().with("host.json", r#"{"version": "2.0"}"#).with("function_app.py", "");
        files.iter().fold(folder, |folder, (name, text)| folder.with(name, text))
    }

    /// The same with one more file.
    pub(crate) fn with(self, name: &str, text: &str) -> Folder {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The same without a file.
    pub(crate) fn without(self, name: &str) -> Folder {
        fs::remove_file(self.0.join(name)).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self, environment: &[(&str, &str)]) -> Result<App, AppError> {
        App::open(&self.0, environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    /// Why the app does not open.
    pub(crate) fn refusal(&self, environment: &[(&str, &str)]) -> String {
        self.open(environment).unwrap_err().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
