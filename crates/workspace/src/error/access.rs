//! Errors of the system about files: what they mean in Chinese, and what the user can do.

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

/// Returns the reason of a failed file operation in Chinese. The system has only English words.
pub(super) fn io_reason_zh(error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "文件或文件夹不存在",
        io::ErrorKind::PermissionDenied => "没有权限",
        io::ErrorKind::AlreadyExists => "已经存在",
        io::ErrorKind::IsADirectory => "是一个文件夹",
        io::ErrorKind::NotADirectory => "路径中有一项不是文件夹",
        io::ErrorKind::StorageFull => "磁盘空间不足",
        io::ErrorKind::ReadOnlyFilesystem => "文件系统是只读的",
        _ => return error.to_string(),
    };
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_file_names_its_folder_to_everyone() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let place = Path::new("/none/of/file");
        let (zh, en) = io_hint(place, &refused, Interface::CommandLine).unwrap();
        assert!(zh.contains("/none/of") && en.contains("/none/of") && !en.contains("file:"), "{zh} {en}");
        assert!(io_hint(place, &refused, Interface::Mcp).unwrap().1.starts_with("ask the user"));
        assert!(io_hint(place, &io::Error::from(io::ErrorKind::NotFound), Interface::CommandLine).is_none());
        assert_eq!(io_reason_zh(&io::Error::from_raw_os_error(2)), "文件或文件夹不存在");
    }
}
