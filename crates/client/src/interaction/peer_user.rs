use tokio::net::TcpStream;

/// Whether the connection certainly belongs to another user than this process's, who is not root.
/// On Linux, the kernel's tables of sockets decide; elsewhere, the user is unknown.
///
/// A connection from another network namespace, such as that of a forwarded port, is not in the
/// tables, and its user is unknown. A socket that its process has closed has no user any more. It
/// counts as another user's: otherwise a process could conceal its user by closing the socket.
pub(super) fn is_of_other_user(stream: &TcpStream) -> bool {
    #[cfg(target_os = "linux")]
    if let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) {
        return linux::is_of_other_user(&linux::tables(), local, peer);
    }
    let _ = stream;
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io::Read as _,
        net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    };

    /// The tables of this network namespace. A socket with a mapped IPv4 address is in the second
    /// one.
    const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
    /// The maximum size that is read of each table: about 50,000 sockets.
    const MAX_TABLE: u64 = 8 * 1024 * 1024;
    const ROOT: &str = "0";
    /// The inode of a socket that its process has closed.
    const CLOSED: &str = "0";

    /// The tables that can be read.
    pub(super) fn tables() -> String {
        let mut text = String::new();
        for table in TABLES {
            // Without the table, the user is unknown.
            let _ =
                File::open(table).and_then(|file| file.take(MAX_TABLE).read_to_string(&mut text));
        }
        text
    }

    pub(super) fn is_of_other_user(tables: &str, local: SocketAddr, peer: SocketAddr) -> bool {
        let find = |from, to| tables.lines().find_map(|line| row(line, from, to));
        match (find(local, peer), find(peer, local)) {
            (_, Some((_, CLOSED))) => true,
            (Some((own, _)), Some((user, _))) => user != own && user != ROOT,
            // The connection has ended.
            (None, None) => !tables.is_empty(),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// The user and the inode in a line for the socket with these addresses.
    fn row(line: &str, from: SocketAddr, to: SocketAddr) -> Option<(&str, &str)> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_socket = address(fields.next()?)? == canonical(from)
            && address(fields.next()?)? == canonical(to);
        // After the addresses: the state, the queues, the timer, the retransmissions, the user, the
        // timeout, the inode.
        is_socket
            .then(|| Some((fields.nth(4)?, fields.nth(1)?)))
            .flatten()
    }

    /// Parses an address such as `0100007F:1F90`: words in the byte order of the machine, and the
    /// port.
    fn address(text: &str) -> Option<SocketAddr> {
        let (words, port) = text.split_once(':')?;
        let word = |at: usize| {
            Some(
                u32::from_str_radix(words.get(at..at + 8)?, 16)
                    .ok()?
                    .to_ne_bytes(),
            )
        };
        let ip = match words.len() {
            8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
            32 => {
                let parts = [word(0)?, word(8)?, word(16)?, word(24)?];
                IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(parts.concat()).ok()?))
            }
            _ => return None,
        };
        Some(canonical(SocketAddr::new(
            ip,
            u16::from_str_radix(port, 16).ok()?,
        )))
    }

    /// The address without the mapping of IPv4 to IPv6.
    fn canonical(address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    #[cfg(test)]
    mod tests {
        use tokio::net::{TcpListener, TcpStream};

        use super::*;

        const LOCAL: &str = "127.0.0.1:8080";
        const PEER: &str = "127.0.0.1:40000";

        fn line(from: &str, to: &str, user: u32, inode: u32) -> String {
            format!(
                "   1: {from} {to} 01 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0 20 4 0 10 -1\n"
            )
        }

        /// I3: only a connection whose user is known, and is neither this one nor root, is another
        /// user's. A closed socket has no user.
        #[test]
        #[cfg(target_endian = "little")]
        fn the_user_is_in_the_table() {
            let [local, peer] = [LOCAL, PEER].map(|address| address.parse().unwrap());
            let own = line("0100007F:1F90", "0100007F:9C40", 1000, 7);
            let of = |user, inode| line("0100007F:9C40", "0100007F:1F90", user, inode);
            let mapped = "0000000000000000FFFF00000100007F";
            let elsewhere = line(
                &format!("{mapped}:9C40"),
                &format!("{mapped}:1F90"),
                1001,
                8,
            );
            for (theirs, expected) in [
                (of(1000, 8), false),
                (of(0, 8), false),
                (of(1001, 8), true),
                (elsewhere, true),
                (of(0, 0), true),
                (of(1000, 0), true),
                (line("0100007F:9C41", "0100007F:1F90", 1001, 8), false),
                (String::new(), false),
            ] {
                let table = format!("  sl  local_address rem_address   st\n{own}{theirs}");
                assert_eq!(is_of_other_user(&table, local, peer), expected, "{theirs}");
            }
            assert!(
                is_of_other_user(&of(1001, 8).replace("9C40", "9C42"), local, peer),
                "it has ended"
            );
            assert!(!is_of_other_user("", local, peer), "there is no table");
        }

        /// A connection of this user is found in the tables.
        #[tokio::test]
        async fn a_connection_of_this_user_is_accepted() {
            for address in ["127.0.0.1:0", "[::1]:0"] {
                let Ok(listener) = TcpListener::bind(address).await else {
                    continue;
                };
                let browser = TcpStream::connect(listener.local_addr().unwrap())
                    .await
                    .unwrap();
                let (accepted, peer) = listener.accept().await.unwrap();
                let local = accepted.local_addr().unwrap();
                let tables = tables();
                assert!(
                    tables.lines().any(|line| row(line, peer, local).is_some()),
                    "{tables}"
                );
                assert!(!is_of_other_user(&tables, local, peer));
                drop(browser);
            }
        }
    }
}
