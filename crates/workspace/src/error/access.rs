//! Hints for files that the system does not let this user read or write.

use std::io;
use std::path::Path;

use tanmi_base::Interface;

/// Returns what to do about a failed file operation, if the user can do something.
pub(super) fn io_hint(place: &Path, error: &io::Error, interface: Interface) -> Option<(String, String)> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    let (zh, en) = access_hint(place);
    Some(match interface {
        Interface::CommandLine => (zh, en),
        _ => (format!("请用户处理：{zh}"), format!("ask the user to do this: {en}")),
    })
}

/// Returns how the user gets access to a file or folder that the system refuses.
pub fn access_hint(place: &Path) -> (String, String) {
    let folder = match place.is_dir() {
        true => place,
        false => place.parent().unwrap_or(place),
    };
    let folder = folder.display();
    match cfg!(unix) {
        true => (
            format!(
                "让你的用户可以读写 {folder} 及其中的文件：`chmod -R u+rwX {folder}`；如果它属于别人，先改所有者"
            ),
            format!(
                "let your user read and write {folder} and its files: `chmod -R u+rwX {folder}`; \
                 if it belongs to another user, change its owner first"
            ),
        ),
        false => (
            format!("让你的用户可以读写 {folder} 及其中的文件"),
            format!("let your user read and write {folder} and its files"),
        ),
    }
}
