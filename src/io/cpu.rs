//! What the processor does by itself: the one place that asks.
//!
//! Fed by: the processor. Yields: whether AES-GCM is fast here, which a node says in its handshakes.
//! Never: decides on a cipher; both ends do, by what both said.

/// Whether AES and the multiplication of GCM are instructions.
pub(super) fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}
