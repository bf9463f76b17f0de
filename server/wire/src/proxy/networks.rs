//! Which peers are meant by a list of addresses and networks.
//!
//! Owns the text of the list and the match. Refuses to know what is granted to them.
//! Invariant: an IPv4 peer at an IPv6 socket (`::ffff:192.0.2.1`) is the IPv4 peer.

use std::net::IpAddr;

/// Addresses, networks in CIDR notation, and the peers of unix sockets.
///
/// ```
/// use m0_wire::proxy::Networks;
///
/// let networks = Networks::parse("192.0.2.0/24, ::1, unix").unwrap();
/// assert!(networks.hold("192.0.2.77".parse().unwrap()) && networks.hold_unix());
/// assert!(!networks.hold("192.0.3.1".parse().unwrap()));
/// assert!(Networks::parse("192.0.2.1/24").is_none(), "bits behind the prefix");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    /// Bits of the first address, and how many of them count.
    all: Vec<(IpAddr, u32)>,
    unix: bool,
}

impl Networks {
    /// Reads a list between commas; an empty text holds nobody. None for a part that is no address, no network, or
    /// a network whose address has bits behind its prefix, which was hardly meant.
    pub fn parse(text: &str) -> Option<Self> {
        let mut networks = Networks::default();
        if text.is_empty() {
            return Some(networks);
        }
        for part in text.split(',').map(str::trim) {
            if part == "unix" {
                networks.unix = true;
            } else {
                networks.all.push(network(part)?);
            }
        }
        Some(networks)
    }

    /// Whether nobody is meant.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && !self.unix
    }

    /// Whether this address is meant.
    pub fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.all
            .iter()
            .any(|&(first, prefix)| masked(address, prefix) == Some(first))
    }

    /// Whether peers at unix sockets are meant.
    pub fn hold_unix(&self) -> bool {
        self.unix
    }
}

fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => {
            let plain = prefix.bytes().all(|byte| byte.is_ascii_digit());
            (address, Some(prefix.parse().ok().filter(|_| plain)?))
        }
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    if address.to_canonical() != address {
        // An IPv4 peer is matched as one, so this would match nobody.
        return None;
    }
    let prefix = prefix.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
    (masked(address, prefix) == Some(address)).then_some((address, prefix))
}

/// The first `prefix` bits of an address; none where it has fewer.
fn masked(address: IpAddr, prefix: u32) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let rest = 32_u32.checked_sub(prefix)?;
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let rest = 128_u32.checked_sub(prefix)?;
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    })
}
