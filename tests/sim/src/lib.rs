//! Whole meshes by seed.
