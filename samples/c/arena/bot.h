/* A bot: makes inputs from what the local player would see. Not part of the simulation: it reads the predicted state of its own
 * machine, and what it decides reaches the others as any player's input does. */
#ifndef ARENA_BOT_H
#define ARENA_BOT_H

#include "sim.h"

typedef struct arena_bot {
    uint64_t rng;
    uint32_t slot, busy;
    int32_t hold; /* frames until it decides anew */
    uint8_t input[ARENA_INPUT_SIZE];
} arena_bot;

/* `busy`: another input every frame, which is the worst case for prediction; else 3 to 8 decisions a second, as people do. */
void arena_bot_init(arena_bot *bot, uint64_t seed, uint32_t slot, uint32_t busy);

/* Writes the input for the coming frame. */
void arena_bot_think(arena_bot *bot, const arena_state *state, uint8_t input[ARENA_INPUT_SIZE]);

#endif
