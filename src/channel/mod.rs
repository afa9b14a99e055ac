//! The sealed pipe to one peer: acknowledgements, round-trip time, and every delivery kind in one packet.
//!
//! Fed by: packets of that peer, messages to send, time. Yields: packets, messages, clock samples, and the sections that
//! belong to the node. Never: decides *when* a packet goes (it says when it wants one; the node also knows the inputs).
