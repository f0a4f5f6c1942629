//! `tanmi serve --database`

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use serde_json::json;
use tanmi_app::Env;
use tanmi_base::Lang;
use tanmi_server::http::tls::TlsFiles;
use tanmi_server::team::{self, Log, LogLevel, ServeOptions, StartError};

use super::serve::{failure_reason, report};
use crate::cli::ServeArgs;
use crate::out;

/// Serves a team over its database.
pub fn run(env: Env, args: &ServeArgs, json: bool) -> ExitCode {
    let lang = crate::env::language();
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let outcome = match super::team::address(args.database.as_deref(), lang) {
        Err(error) => Err(error.message(lang)),
        Ok(None) => Err(lang
            .pick(
                "--listen 用于团队服务器；请同时给出 --database，或设置环境变量 TANMI_DATABASE_URL",
                "--listen is for the server of a team; also use --database, or set the variable TANMI_DATABASE_URL",
            )
            .to_owned()),
        Ok(Some(address)) => {
            let options = options(args, listen);
            let scheme = if options.tls.is_some() { "https" } else { "http" };
            team::run(env, address, options, |bound| announce(scheme, bound, json, lang))
                .map_err(|error| failure(&error, listen, lang))
        }
    };
    report(outcome, json, lang)
}

fn options(args: &ServeArgs, listen: SocketAddr) -> ServeOptions {
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| TlsFiles { cert, key });
    let level = LogLevel::from_word(&args.log_level).unwrap_or(LogLevel::Info);
    ServeOptions { listen, tls, rate_limit: args.rate_limit, log: Log::new(level, out::log_line) }
}

fn announce(scheme: &str, bound: SocketAddr, json: bool, lang: Lang) {
    let url = format!("{scheme}://{bound}");
    if json {
        out::json(&json!({"url": url, "pid": std::process::id()}));
        return;
    }
    out::text(&lang.pick(
        format!("正在 {url} 为团队提供服务；按 Ctrl-C 停止\n"),
        format!("serving a team at {url}; press Ctrl-C to stop\n"),
    ));
}

fn failure(error: &StartError, listen: SocketAddr, lang: Lang) -> String {
    match error {
        StartError::NotLoopback(_) => lang.pick(
            format!(
                "没有 TLS 时只能在本机地址上提供服务，而 {listen} 不是；请用 --tls-cert 和 --tls-key 给出证书和私钥，或使用 127.0.0.1 或 [::1]"
            ),
            format!(
                "without TLS the server listens on this machine only, and {listen} is not; give a certificate with --tls-cert and --tls-key, or use 127.0.0.1 or [::1]"
            ),
        ),
        StartError::Tls(error) => lang.pick(
            format!("无法使用 TLS 证书或私钥：{error}；请检查 --tls-cert 和 --tls-key"),
            format!("the TLS certificate or key cannot be used: {error}; check --tls-cert and --tls-key"),
        ),
        StartError::Io(error) => failure_reason(Some(listen.port()), error, lang),
    }
}
