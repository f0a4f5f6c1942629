//! Finds tokens that are known by their shape: a unique prefix, or fixed parts.

use super::value::{has_digit, is_name_like};
use super::{Hit, Match, last_bytes};
use crate::text::prefix;

/// A token that starts with a unique prefix.
pub(super) struct Token {
    pub(super) kind: &'static str,
    pub(super) prefix: &'static str,
    /// Minimum number of characters after the prefix.
    pub(super) min: usize,
    pub(super) alphabet: Alphabet,
}

/// The characters of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Letters, digits and `_-./+=`.
    Text,
    Hex,
    /// A password hash as in a shadow file; parts are separated by `$`.
    Crypt,
}

/// Number of characters that decide whether a text is a token. Bounds the work for a text full of prefixes.
const MAX_CHECKED: usize = 128;

const fn text(kind: &'static str, prefix: &'static str, min: usize) -> Token {
    Token { kind, prefix, min, alphabet: Alphabet::Text }
}

const fn hex(kind: &'static str, prefix: &'static str, min: usize) -> Token {
    Token { kind, prefix, min, alphabet: Alphabet::Hex }
}

const fn crypt(prefix: &'static str) -> Token {
    Token { kind: "password hash", prefix, min: 20, alphabet: Alphabet::Crypt }
}

/// Invariant: of two prefixes that start alike, the longer comes first.
pub(super) const TOKENS: &[Token] = &[
    text("Anthropic key", "sk-ant-", 20),
    text("OpenAI key", "sk-proj-", 20),
    text("OpenAI key", "sk-svcacct-", 20),
    text("OpenRouter key", "sk-or-", 20),
    text("Langfuse key", "sk-lf-", 20),
    text("API key", "sk-", 32),
    text("Stripe key", "sk_live_", 16),
    text("Stripe key", "rk_live_", 16),
    text("Stripe key", "sk_test_", 16),
    text("Stripe key", "rk_test_", 16),
    text("Stripe key", "whsec_", 16),
    text("API key", "sk_", 32),
    text("GitHub token", "github_pat_", 30),
    text("GitHub token", "ghp_", 30),
    text("GitHub token", "gho_", 30),
    text("GitHub token", "ghu_", 30),
    text("GitHub token", "ghs_", 30),
    text("GitHub token", "ghr_", 30),
    text("GitLab token", "glpat-", 16),
    text("GitLab token", "gldt-", 16),
    text("GitLab token", "glrt-", 16),
    text("GitLab token", "glptt-", 16),
    text("GitLab token", "glcbt-", 16),
    text("GitLab token", "glsoat-", 16),
    text("GitLab token", "glagent-", 16),
    text("GitLab token", "glft-", 16),
    text("GitLab token", "gloas-", 16),
    text("GitLab token", "glimt-", 16),
    text("GitLab token", "GR1348941", 16),
    text("Slack token", "xoxb-", 16),
    text("Slack token", "xoxp-", 16),
    text("Slack token", "xoxa-", 16),
    text("Slack token", "xoxc-", 16),
    text("Slack token", "xoxd-", 16),
    text("Slack token", "xoxe-", 16),
    text("Slack token", "xoxe.", 16),
    text("Slack token", "xoxo-", 16),
    text("Slack token", "xoxr-", 16),
    text("Slack token", "xoxs-", 16),
    text("Slack token", "xapp-", 16),
    text("npm token", "npm_", 30),
    text("PyPI token", "pypi-", 30),
    text("RubyGems key", "rubygems_", 30),
    text("NuGet key", "oy2", 40),
    text("crates.io token", "cio", 32),
    text("Clojars token", "CLOJARS_", 40),
    text("Hugging Face token", "hf_", 30),
    text("Hugging Face token", "api_org_", 30),
    text("Google API key", "AIza", 30),
    text("Google OAuth token", "ya29.", 20),
    text("Google OAuth token", "1//0", 30),
    text("Google OAuth secret", "GOCSPX-", 16),
    text("AWS key id", "AKIA", 16),
    text("AWS key id", "ASIA", 16),
    text("AWS key", "ABSK", 60),
    text("AWS key", "bedrock-api-key-", 30),
    text("Aliyun key id", "LTAI", 12),
    text("Tencent key id", "AKID", 28),
    text("Volcengine key id", "AKLT", 20),
    hex("DingTalk secret", "SEC", 60),
    text("SendGrid key", "SG.", 40),
    text("Brevo key", "xkeysib-", 40),
    text("Brevo key", "xsmtpsib-", 40),
    text("Resend key", "re_", 24),
    text("Postman key", "PMAK-", 30),
    hex("Mailgun key", "key-", 32),
    text("DigitalOcean token", "dop_v1_", 40),
    text("DigitalOcean token", "doo_v1_", 40),
    text("DigitalOcean token", "dor_v1_", 40),
    text("Groq key", "gsk_", 30),
    text("xAI key", "xai-", 30),
    text("Perplexity key", "pplx-", 30),
    text("Replicate token", "r8_", 30),
    text("Fireworks key", "fw_", 20),
    text("Tavily key", "tvly-", 20),
    text("Nvidia key", "nvapi-", 30),
    text("Voyage key", "pa-", 40),
    text("Cerebras key", "csk-", 30),
    text("Jina key", "jina_", 30),
    text("Firecrawl key", "fc-", 30),
    text("LangSmith key", "lsv2_", 30),
    text("E2B key", "e2b_", 30),
    text("Together key", "tgp_v1_", 30),
    text("Pinecone key", "pcsk_", 30),
    text("Weights & Biases key", "wandb_v1_", 30),
    text("Shopify token", "shpat_", 16),
    text("Shopify token", "shpca_", 16),
    text("Shopify token", "shppa_", 16),
    text("Shopify token", "shpss_", 16),
    text("Square token", "sq0atp-", 20),
    text("Square token", "sq0csp-", 20),
    text("Square token", "EAAA", 50),
    text("Facebook token", "EAA", 60),
    text("PayPal token", "access_token$production$", 30),
    text("Plaid token", "access-production-", 30),
    text("Razorpay key", "rzp_live_", 14),
    text("Razorpay key", "rzp_test_", 14),
    text("Docker token", "dckr_pat_", 16),
    text("Docker token", "dckr_oat_", 16),
    text("Vault token", "hvs.", 16),
    text("Vault token", "hvb.", 16),
    text("Vault token", "hvr.", 16),
    text("Doppler token", "dp.pt.", 20),
    text("Doppler token", "dp.st.", 20),
    text("Doppler token", "dp.ct.", 20),
    text("Doppler token", "dp.sa.", 20),
    text("Doppler token", "dp.scim.", 20),
    text("1Password token", "ops_ey", 30),
    text("1Password key", "A3-", 26),
    text("Infisical token", "st.", 50),
    text("Linear key", "lin_api_", 16),
    text("Linear key", "lin_oauth_", 16),
    text("Notion token", "ntn_", 20),
    text("Notion token", "secret_", 40),
    text("Figma token", "figd_", 16),
    text("Tailscale key", "tskey-", 16),
    text("Atlassian token", "ATATT3", 30),
    text("Atlassian token", "ATCTT3", 30),
    text("Bitbucket token", "ATBB", 24),
    text("New Relic key", "NRAK-", 20),
    text("New Relic key", "NRJS-", 16),
    text("New Relic key", "NRII-", 20),
    text("New Relic key", "NRIQ-", 20),
    text("Grafana token", "glsa_", 30),
    text("Grafana token", "glc_", 30),
    text("Sentry token", "sntrys_", 30),
    text("Sentry token", "sntryu_", 30),
    text("PostHog key", "phx_", 30),
    text("Dynatrace token", "dt0c01.", 30),
    text("Dynatrace token", "dt0s01.", 30),
    text("Honeycomb key", "hcaik_", 30),
    text("Databricks token", "dapi", 32),
    text("Databricks token", "dose", 32),
    text("Heroku token", "HRKU-", 30),
    text("Netlify token", "nfp_", 30),
    text("Vercel token", "vcp_", 20),
    text("Vercel token", "vercel_blob_rw_", 20),
    text("Fly token", "fm1_", 30),
    text("Fly token", "fm2_", 30),
    text("Fly token", "fo1_", 30),
    text("Render key", "rnd_", 24),
    text("Supabase token", "sbp_", 30),
    text("Supabase key", "sb_secret_", 20),
    text("PlanetScale token", "pscale_tkn_", 20),
    text("PlanetScale password", "pscale_pw_", 20),
    text("PlanetScale token", "pscale_oauth_", 20),
    text("Neon key", "napi_", 30),
    text("Pulumi token", "pul-", 36),
    text("Scalingo token", "tk-us-", 30),
    text("Prefect key", "pnu_", 30),
    text("Buildkite token", "bkua_", 30),
    text("CircleCI token", "CCIPAT_", 30),
    text("CircleCI token", "CCIPRJ_", 30),
    text("SonarQube token", "sqp_", 30),
    text("SonarQube token", "squ_", 30),
    text("SonarQube token", "sqa_", 30),
    text("Artifactory token", "AKCp", 50),
    text("Artifactory token", "cmVmdGtu", 40),
    text("ReadMe key", "rdme_", 40),
    text("Typeform token", "tfp_", 30),
    text("Contentful token", "CFPAT-", 30),
    text("Frame.io token", "fio-u-", 40),
    text("HubSpot token", "pat-na1-", 30),
    text("HubSpot token", "pat-eu1-", 30),
    text("Intra42 secret", "s-s4t2", 30),
    text("EasyPost key", "EZAK", 40),
    text("EasyPost key", "EZTK", 40),
    text("Shippo token", "shippo_live_", 30),
    text("Shippo token", "shippo_test_", 30),
    text("Flutterwave key", "FLWSECK", 20),
    text("Adafruit key", "aio_", 24),
    text("Cloudflare key", "v1.0-", 60),
    text("Dropbox token", "sl.", 60),
    text("Clerk key", "ak_", 30),
    text("Mapbox token", "sk.eyJ", 40),
    text("Discord token", "mfa.", 60),
    text("Atlas token", "mdb_sa_sk_", 20),
    text("Ionic token", "ion_", 40),
    text("Duffel token", "duffel_live_", 30),
    text("Duffel token", "duffel_test_", 30),
    text("Zuplo key", "zpka_", 30),
    text("Okta token", "SSWS ", 30),
    text("ServerChan key", "SCT", 24),
    text("private key", "AGE-SECRET-KEY-1", 40),
    text("private key", "LS0tLS1CRUdJTiBQUklW", 20),
    text("private key", "LS0tLS1CRUdJTiBSU0Eg", 20),
    text("private key", "LS0tLS1CRUdJTiBFQyBQ", 20),
    text("private key", "LS0tLS1CRUdJTiBFTkNS", 20),
    text("private key", "LS0tLS1CRUdJTiBPUEVO", 20),
    text("private key", "b3BlbnNzaC1rZXktdjEA", 20),
    crypt("$apr1$"),
    crypt("$argon2"),
    crypt("$2a$"),
    crypt("$2b$"),
    crypt("$2y$"),
    crypt("$1$"),
    crypt("$5$"),
    crypt("$6$"),
    crypt("$7$"),
    crypt("$y$"),
    crypt("{SSHA}"),
    crypt("{SHA}"),
    crypt("pbkdf2_sha256$"),
    crypt("pbkdf2:sha256:"),
    crypt("scrypt:32768:"),
];

impl Token {
    pub(super) fn find(&self, hit: Hit<'_>, found: &mut Vec<Match>) {
        if self.alphabet != Alphabet::Crypt && is_inside_word(hit) {
            return;
        }
        let read = |text| match self.alphabet {
            Alphabet::Text => token_at(text),
            Alphabet::Hex => run_of(text, |c| c.is_ascii_hexdigit()),
            Alphabet::Crypt => {
                run_of(text, |c| is_token_char(c) || matches!(c, '$' | ',')).trim_end_matches(',')
            }
        };
        let start = prefix(hit.after(), MAX_CHECKED);
        let rest = read(start);
        // An ordinary name can start like a key. Nearly every key contains a digit, and most names do not.
        let is_token = rest.len() >= self.min
            && has_digit(rest)
            && !rest.contains("xxxx")
            && !rest.to_ascii_lowercase().contains("your")
            && (self.alphabet != Alphabet::Text || !is_words(rest));
        if is_token {
            let rest =
                if run_of(start, is_token_char).len() < start.len() { rest } else { read(hit.after()) };
            found.push(Match { range: hit.at..hit.end + rest.len(), kind: self.kind, rank: 0 });
        }
    }
}

/// Returns whether a text consists of several words: `config-registry-v2-something`.
fn is_words(rest: &str) -> bool {
    is_name_like(rest) && rest.contains(['-', '_', '.', '/', '='])
}

/// Returns whether the hit is inside a longer word, where a prefix means something else.
fn is_inside_word(hit: Hit<'_>) -> bool {
    hit.before().ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=')
}

/// Returns the token at the start of a text. Punctuation after it (`.`, `-`, `/`, `=`) is not part of it.
pub(super) fn token_at(text: &str) -> &str {
    run_of(text, is_token_char).trim_end_matches(['.', '-', '/', '='])
}

fn run_of(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

fn is_base64url(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Finds JSON web tokens: three parts if signed, five if encrypted.
pub(super) fn find_jwt(hit: Hit<'_>, found: &mut Vec<Match>) {
    // The second part of a token starts alike.
    if is_inside_word(hit) || hit.before().ends_with(['.', '-']) {
        return;
    }
    let token = run_of(&hit.text[hit.at..], |c| is_base64url(c) || c == '.').trim_end_matches(['.', '-']);
    let parts = token.split('.').filter(|part| part.len() >= 4).count();
    if token.len() >= 33 && (parts == 3 || parts == 5) && has_digit(token) {
        found.push(Match { range: hit.at..hit.at + token.len(), kind: "JSON web token", rank: 0 });
    }
}

pub(super) const TWILIO_STARTS: &[&str] = &[
    "AC0", "AC1", "AC2", "AC3", "AC4", "AC5", "AC6", "AC7", "AC8", "AC9", "ACa", "ACb", "ACc", "ACd", "ACe",
    "ACf", "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc", "SKd",
    "SKe", "SKf",
];

/// Finds `AC` or `SK` and 32 hexadecimal digits.
pub(super) fn find_twilio(hit: Hit<'_>, found: &mut Vec<Match>) {
    let rest = run_of(prefix(&hit.text[hit.at + 2..], 40), |c| c.is_ascii_alphanumeric());
    if rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()) && !is_inside_word(hit) {
        found.push(Match { range: hit.at..hit.at + 34, kind: "Twilio key", rank: 0 });
    }
}

/// Finds 32 hexadecimal digits before `-us12`.
pub(super) fn find_mailchimp(hit: Hit<'_>, found: &mut Vec<Match>) {
    let before = last_bytes(hit.before(), 33);
    let len = before.len() - before.trim_end_matches(|c: char| c.is_ascii_hexdigit()).len();
    let digits = run_of(prefix(hit.after(), 4), |c| c.is_ascii_alphanumeric());
    let is_region = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if len == 32 && is_region {
        found.push(Match { range: hit.at - len..hit.end + digits.len(), kind: "Mailchimp key", rank: 0 });
    }
}

/// Finds client secrets of Azure: three characters, `8Q~` and about 34 characters.
pub(super) fn find_azure(hit: Hit<'_>, found: &mut Vec<Match>) {
    let is_part = |c: char| is_base64url(c) || matches!(c, '~' | '.');
    let before = last_bytes(hit.before(), 4);
    let len = before.len() - before.trim_end_matches(is_part).len();
    let rest = run_of(prefix(hit.after(), 64), is_part).trim_end_matches('.');
    if len == 3 && (31..=38).contains(&rest.len()) && has_digit(rest) {
        found.push(Match { range: hit.at - 3..hit.end + rest.len(), kind: "Azure secret", rank: 0 });
    }
}

/// Finds tokens of Terraform: 14 characters, `.atlasv1.` and about 60 characters.
pub(super) fn find_terraform(hit: Hit<'_>, found: &mut Vec<Match>) {
    let before = last_bytes(hit.before(), 32);
    let len = before.len() - before.trim_end_matches(is_base64url).len();
    let rest = run_of(prefix(hit.after(), MAX_CHECKED), is_base64url);
    if len >= 8 && rest.len() >= 30 && has_digit(rest) {
        found.push(Match { range: hit.at - len..hit.end + rest.len(), kind: "Terraform token", rank: 0 });
    }
}

/// Finds a public part, a colon and a secret part: the tokens of Telegram bots and of Firebase.
pub(super) fn find_pair(hit: Hit<'_>, found: &mut Vec<Match>) {
    let before = last_bytes(hit.before(), 64);
    let public = &before[before.trim_end_matches(is_base64url).len()..];
    let digits = public.len() - public.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let rest = run_of(prefix(hit.after(), MAX_CHECKED), is_base64url);
    let (len, kind) =
        if hit.end - hit.at == 3 { (digits, "Telegram token") } else { (public.len(), "Firebase key") };
    if len >= 7 && rest.len() >= 30 && has_digit(rest) {
        found.push(Match { range: hit.at - len..hit.end + rest.len(), kind, rank: 0 });
    }
}

/// Base64 of the first digits of a Discord user id.
pub(super) const DISCORD_STARTS: &[&str] = &[
    "MTA", "MTE", "MTI", "MTM", "MTQ", "MTU", "MTY", "MTc", "MTg", "MTk", "Mjk", "Nzk", "ODA", "ODg", "OTk",
    "OTA",
];

/// Finds tokens of Discord bots: the user id, six characters and a signature, separated by dots.
pub(super) fn find_discord(hit: Hit<'_>, found: &mut Vec<Match>) {
    let token =
        run_of(prefix(&hit.text[hit.at..], 120), |c| is_base64url(c) || c == '.').trim_end_matches('.');
    let lens: Vec<usize> = token.split('.').map(str::len).collect();
    if let [18..=30, 6..=7, 27..=45] = lens[..]
        && !is_inside_word(hit)
    {
        found.push(Match { range: hit.at..hit.at + token.len(), kind: "Discord token", rank: 0 });
    }
}

/// Finds `pat`, 14 characters, a dot and 64 hexadecimal digits.
pub(super) fn find_airtable(hit: Hit<'_>, found: &mut Vec<Match>) {
    let token = run_of(prefix(hit.after(), 100), |c| c.is_ascii_alphanumeric() || c == '.');
    let is_token = token.split_once('.').is_some_and(|(id, secret)| {
        (12..=17).contains(&id.len())
            && secret.len() >= 40
            && secret.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_token && !is_inside_word(hit) {
        found.push(Match { range: hit.at..hit.end + token.len(), kind: "Airtable token", rank: 0 });
    }
}
