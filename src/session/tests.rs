//! Tests of the session in virtual time.
