/* Shows the arena in a terminal: one character is one tile wide and two high. Reads the state, never changes it. */
#ifndef ARENA_VIEW_H
#define ARENA_VIEW_H

#include "sim.h"

/* `local_slots`: a bit for each slot played here; those ships are shown reversed. */
void arena_draw(const arena_state *state, uint32_t local_slots);

#endif
