//! Ledgers as files.

use std::io;

use async_trait::async_trait;
use pintle_agent::{Ledger, Ledgers};
use serde::{Deserialize, Serialize};

use super::{FileStore, NEW, blocking, create_dir, io_error};
use crate::error::StoreError;
use crate::ledger::check_ledger_name;

/// Content of a ledger's file.
#[derive(Serialize, Deserialize)]
pub(super) struct LedgerFile {
    version: u64,
    text: String,
}

#[async_trait]
impl Ledgers for FileStore {
    async fn ledger(&self, name: &str) -> io::Result<Ledger> {
        let (this, name) = (self.clone(), name.to_owned());
        Ok(blocking(move || this.ledger_now(&name)).await?)
    }

    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> io::Result<bool> {
        let (this, name, text) = (self.clone(), name.to_owned(), text.to_owned());
        Ok(blocking(move || this.replace_ledger_now(&name, version, text)).await?)
    }
}

impl FileStore {
    fn ledger_now(&self, name: &str) -> Result<Ledger, StoreError> {
        check_ledger_name(name)?;
        let path = self.layout.ledger(name);
        let mut bytes = Vec::new();
        let read = self.disk.open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ledger::default()),
            read => read.map_err(io_error("read", &path))?,
        };
        let written: LedgerFile =
            serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(io_error("read", &path))?;
        Ok(Ledger::new(written.version, written.text))
    }

    fn replace_ledger_now(&self, name: &str, version: u64, text: String) -> Result<bool, StoreError> {
        check_ledger_name(name)?;
        let (directory, path) = (self.layout.ledgers(), self.layout.ledger(name));
        create_dir(self.disk.as_ref(), &directory)?;
        // One lock for all ledgers. Its file is never removed, since another process may wait for it.
        let lock = self.layout.ledger_lock();
        let Ok(_lock) = self.disk.lock(&lock, "").map_err(io_error("lock", &lock))? else { return Ok(false) };
        let before = self.ledger_now(name)?.version;
        if before != version {
            return Ok(false);
        }
        let replaced = if text.is_empty() {
            if before == 0 { Ok(()) } else { self.disk.remove_file(&path) }
        } else {
            let written = LedgerFile { version: version + 1, text };
            let temporary = directory.join(format!("{NEW}{}", uuid::Uuid::now_v7()));
            let bytes = serde_json::to_vec(&written).unwrap_or_default();
            let mut file = self.disk.create_new(&temporary).map_err(io_error("create", &temporary))?;
            let written = file.write_all(&bytes).and_then(|()| file.sync());
            written.and_then(|()| self.disk.rename(&temporary, &path)).inspect_err(|_| {
                let _ = self.disk.remove_file(&temporary);
            })
        };
        replaced.map_err(io_error("write", &path))?;
        self.disk.sync_dir(&directory).map_err(io_error("sync", &directory))?;
        Ok(true)
    }
}
