//! Numbers of variable length, which both formats have.

/// Appends a number, seven bits at a time, the lowest first. The high bit of a byte tells that more follow.
pub(super) fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
