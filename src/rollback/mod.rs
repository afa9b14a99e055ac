//! The rollback core: input queues, prediction, saved states, and the list of steps for one frame.
//!
//! Fed by: the session. Yields: steps (save, load, advance) and verdicts.
//! Never: touches the game's memory, the bridge or a clock.
