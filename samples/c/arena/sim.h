/* The arena: a deterministic simulation that any peer computes bit for bit alike.
 *
 * Integers only (Q16.16 fixed point, one unit = one tile), its own random generator inside the state, no pointers, no clock, no
 * allocation: the whole game is one flat struct, so that saving is a copy and two equal games have equal bytes.
 * Nothing here knows that there is a network.
 */
#ifndef ARENA_SIM_H
#define ARENA_SIM_H

#include <stdint.h>

#define ARENA_PLAYERS 16
#define ARENA_WIDTH 64  /* tiles */
#define ARENA_HEIGHT 48
#define ARENA_TILES (ARENA_WIDTH * ARENA_HEIGHT)
#define ARENA_SHOTS 128
#define ARENA_PICKUPS 32
#define ARENA_SCRAP 320 /* debris; more than 200 pieces drift about at any time */
#define ARENA_ONE 65536 /* Q16.16: one tile */
#define ARENA_INPUT_SIZE 4

/* Input, byte 0: buttons. Byte 1: aim, 256 = one turn, 0 = east, clockwise on the screen. Byte 2: thrust, 0..255. Byte 3: weapon. */
#define ARENA_UP 1u
#define ARENA_DOWN 2u
#define ARENA_LEFT 4u
#define ARENA_RIGHT 8u
#define ARENA_FIRE 16u
#define ARENA_DASH 32u

/* Four bits a slot in the status word of arena_step. They are retick's: RETICK_SLOT_DISCONNECTED and RETICK_SLOT_UNUSED. */
#define ARENA_STATUS_DISCONNECTED 2u
#define ARENA_STATUS_UNUSED 4u

/* What a ship is doing. */
#define ARENA_SHIP_NONE 0u  /* nobody has this slot */
#define ARENA_SHIP_ALIVE 1u
#define ARENA_SHIP_DEAD 2u  /* waits for its respawn */
#define ARENA_SHIP_WRECK 3u /* its player left: it drifts and falls apart */
#define ARENA_SHIP_GONE 4u  /* the wreck has fallen apart */

/* What a thing is. */
#define ARENA_NOTHING 0u
#define ARENA_BOLT 1u   /* blaster and scatter: bounces off walls */
#define ARENA_SHELL 2u  /* mortar: explodes */
#define ARENA_HEALTH 3u /* pickups */
#define ARENA_SHIELD 4u
#define ARENA_CHARGE 5u
#define ARENA_DEBRIS 6u /* fast, it hurts; slow, it can be collected for energy */

typedef struct arena_ship {
    int32_t x, y, vx, vy;
    uint32_t mode; /* ARENA_SHIP_… */
    uint32_t aim;  /* 0..255 */
    uint32_t weapon;
    int32_t health, shield, energy;
    int32_t reload, dash_wait, respawn; /* frames */
    int32_t score, kills, deaths;
} arena_ship;

typedef struct arena_thing {
    uint32_t kind;  /* ARENA_NOTHING … */
    uint32_t owner; /* slot of who fired it */
    int32_t x, y, vx, vy;
    int32_t life;   /* frames left; debris: size */
    int32_t power;  /* damage */
    int32_t bounces;
    uint32_t angle; /* 0..255, for the picture */
} arena_thing;

typedef struct arena_state {
    uint64_t rng;
    uint32_t frame, player_count;
    uint32_t next_shot, next_pickup, next_scrap; /* where each pool takes its next place from */
    uint32_t alive;                              /* things in use, after the last step */
    arena_ship ships[ARENA_PLAYERS];
    arena_thing shots[ARENA_SHOTS];
    arena_thing pickups[ARENA_PICKUPS];
    arena_thing scrap[ARENA_SCRAP];
    uint8_t walls[ARENA_TILES]; /* high half: hits it takes when whole, 15 = for ever; low half: hits left, 0 = floor */
    uint8_t heat[ARENA_TILES];  /* explosions leave the floor hot; it cools by one a frame */
} arena_state;

/* Builds the map and the first frame: a function of the seed and of how many slots play (clamped to 1..16). */
void arena_init(arena_state *state, uint64_t seed, uint32_t player_count);

/* Computes one frame. `inputs` holds ARENA_INPUT_SIZE bytes a slot, `sizes` how many of them count (missing ones are zero),
 * `status` four bits a slot. */
void arena_step(arena_state *state, const uint8_t *inputs, const uint16_t *sizes, uint64_t status);

/* A digest of the whole state. */
uint64_t arena_checksum(const arena_state *state);

/* The tile under a point, as an index into the maps, and whether a wall stands on it. */
int32_t arena_tile(int32_t x, int32_t y);
int arena_is_wall(const arena_state *state, int32_t x, int32_t y);

/* Direction (0..255) of a vector, and the cosine and sine of a direction in Q16.16. */
uint32_t arena_direction(int32_t dx, int32_t dy);
int32_t arena_cos(uint32_t angle);
int32_t arena_sin(uint32_t angle);

#endif
