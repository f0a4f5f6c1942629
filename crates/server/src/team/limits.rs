//! Limits on how often a token may be used, and on how many unknown tokens and tickets an address may try.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most tokens or addresses that are remembered.
const MAX_REMEMBERED: usize = 10_000;
/// A token may save up as many requests as it has in this many seconds.
const BURST_SECONDS: f64 = 10.0;
/// The number of failed logins that an address has in [`FAILURE_WINDOW`].
const MAX_FAILURES: u32 = 30;
const FAILURE_WINDOW: Duration = Duration::from_secs(60);

/// The requests that each token has left, refilled steadily.
pub struct RateLimit {
    /// 0: no limit.
    per_second: f64,
    left: Mutex<HashMap<String, (f64, Instant)>>,
}

impl RateLimit {
    pub fn new(per_second: u32) -> RateLimit {
        RateLimit { per_second: f64::from(per_second), left: Mutex::default() }
    }

    /// Takes one request of the token with this id. Returns after how many seconds it has one, if it has none.
    pub fn take(&self, token: &str, now: Instant) -> Option<u64> {
        if self.per_second == 0.0 {
            return None;
        }
        let most = self.per_second * BURST_SECONDS;
        let refilled = |(left, at): (f64, Instant)| {
            (left + now.saturating_duration_since(at).as_secs_f64() * self.per_second).min(most)
        };
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REMEMBERED && !all.contains_key(token) {
            all.retain(|_, entry| refilled(*entry) < most);
        }
        let left = all.get(token).map_or(most, |entry| refilled(*entry));
        if left < 1.0 {
            return Some(((1.0 - left) / self.per_second).ceil() as u64);
        }
        all.insert(token.to_owned(), (left - 1.0, now));
        None
    }
}

/// The failed logins of each address in the current window.
#[derive(Default)]
pub struct FailedLogins(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl FailedLogins {
    /// Returns for how many seconds an address may not try further tokens and tickets.
    pub fn blocked_for(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, since) = all.get(&network(address))?;
        let left = FAILURE_WINDOW.checked_sub(now.saturating_duration_since(*since))?;
        (*count >= MAX_FAILURES).then_some(left.as_secs() + 1)
    }

    /// Adds a failure. Returns whether the address may try no further tokens from now on.
    pub fn add(&self, address: IpAddr, now: Instant) -> bool {
        let is_over = |since: Instant| now.saturating_duration_since(since) >= FAILURE_WINDOW;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        if all.len() >= MAX_REMEMBERED && !all.contains_key(&address) {
            all.retain(|_, (_, since)| !is_over(*since));
            let oldest = all.iter().min_by_key(|(_, (_, since))| *since).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| all.len() >= MAX_REMEMBERED) {
                all.remove(&oldest);
            }
        }
        let entry = all.entry(address).or_insert((0, now));
        if is_over(entry.1) {
            *entry = (0, now);
        }
        entry.0 += 1;
        entry.0 == MAX_FAILURES
    }
}

/// Returns the network that counts as one client: with IPv6, one client has 64 bits of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_used_up_token_waits_and_others_do_not() {
        let (limit, start) = (RateLimit::new(2), Instant::now());
        for _ in 0..20 {
            assert_eq!(limit.take("a", start), None);
        }
        assert_eq!(limit.take("a", start), Some(1));
        assert_eq!(limit.take("b", start), None);
        assert_eq!(limit.take("a", start + Duration::from_millis(500)), None, "refilled");
        assert_eq!(limit.take("a", start + Duration::from_millis(500)), Some(1));
        let off = RateLimit::new(0);
        assert!((0..1000).all(|_| off.take("a", start).is_none()));
    }

    #[test]
    fn failed_logins_block_network_until_window_ends() {
        let (failures, start) = (FailedLogins::default(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(failures.blocked_for(address("192.0.2.1"), start), None);
            failures.add(address("192.0.2.1"), start);
            failures.add(address("2001:db8::1"), start);
        }
        assert_eq!(failures.blocked_for(address("192.0.2.1"), start), Some(61));
        assert_eq!(failures.blocked_for(address("::ffff:192.0.2.1"), start), Some(61));
        assert_eq!(failures.blocked_for(address("2001:db8::2"), start), Some(61), "the same network");
        assert_eq!(failures.blocked_for(address("2001:db8:0:1::2"), start), None);
        assert_eq!(failures.blocked_for(address("192.0.2.2"), start), None);
        let later = start + FAILURE_WINDOW + Duration::from_secs(1);
        assert_eq!(failures.blocked_for(address("192.0.2.1"), later), None);
        failures.add(address("192.0.2.1"), later);
        assert_eq!(failures.blocked_for(address("192.0.2.1"), later), None, "counted anew");
    }

    #[test]
    fn failed_logins_of_many_addresses_stay_bounded() {
        let (failures, start) = (FailedLogins::default(), Instant::now());
        for n in 0..MAX_REMEMBERED as u32 + 500 {
            failures.add(std::net::Ipv4Addr::from_bits(n).into(), start + Duration::from_micros(n.into()));
        }
        assert_eq!(failures.0.lock().unwrap().len(), MAX_REMEMBERED);
    }
}
