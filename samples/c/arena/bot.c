/* See bot.h. */
#include "bot.h"

#include <string.h>

static uint32_t bot_random(arena_bot *bot, uint32_t limit)
{
    bot->rng ^= bot->rng << 13; /* xorshift64: never zero once it is not */
    bot->rng ^= bot->rng >> 7;
    bot->rng ^= bot->rng << 17;
    return (uint32_t)(((bot->rng >> 32) * limit) >> 32);
}

void arena_bot_init(arena_bot *bot, uint64_t seed, uint32_t slot, uint32_t busy)
{
    memset(bot, 0, sizeof *bot);
    bot->rng = (seed + slot + 1u) * UINT64_C(0x9e3779b97f4a7c15) | 1u;
    bot->slot = slot;
    bot->busy = busy;
}

static int64_t square_between(int32_t ax, int32_t ay, int32_t bx, int32_t by)
{
    int64_t dx = (int64_t)ax - bx, dy = (int64_t)ay - by;
    return dx * dx + dy * dy;
}

/* Whether no wall stands between two points, sampled 16 times. */
static int can_see(const arena_state *state, const arena_ship *from, const arena_ship *to)
{
    int32_t i;
    for (i = 1; i < 16; i++)
        if (arena_is_wall(state, from->x + (to->x - from->x) / 16 * i, from->y + (to->y - from->y) / 16 * i))
            return 0;
    return 1;
}

static const arena_ship *nearest_enemy(const arena_state *state, uint32_t slot)
{
    const arena_ship *me = &state->ships[slot], *best = NULL;
    int64_t best_square = INT64_MAX;
    uint32_t i;
    for (i = 0; i < state->player_count; i++) {
        const arena_ship *ship = &state->ships[i];
        int64_t square = square_between(me->x, me->y, ship->x, ship->y);
        if (i != slot && ship->mode == ARENA_SHIP_ALIVE && square < best_square) {
            best_square = square;
            best = ship;
        }
    }
    return best;
}

static const arena_thing *nearest_pickup(const arena_state *state, const arena_ship *me)
{
    const arena_thing *best = NULL;
    int64_t best_square = INT64_MAX;
    uint32_t i;
    for (i = 0; i < ARENA_PICKUPS; i++) {
        int64_t square = square_between(me->x, me->y, state->pickups[i].x, state->pickups[i].y);
        if (state->pickups[i].kind != ARENA_NOTHING && square < best_square) {
            best_square = square;
            best = &state->pickups[i];
        }
    }
    return best;
}

static uint8_t buttons_towards(int32_t dx, int32_t dy)
{
    uint8_t buttons = 0;
    if (dx > ARENA_ONE / 2)
        buttons |= ARENA_RIGHT;
    if (dx < -ARENA_ONE / 2)
        buttons |= ARENA_LEFT;
    if (dy > ARENA_ONE / 2)
        buttons |= ARENA_DOWN;
    if (dy < -ARENA_ONE / 2)
        buttons |= ARENA_UP;
    return buttons;
}

static void decide(arena_bot *bot, const arena_state *state)
{
    const arena_ship *me = &state->ships[bot->slot], *enemy = nearest_enemy(state, bot->slot);
    const arena_thing *pickup = nearest_pickup(state, me);
    uint8_t buttons = (uint8_t)bot_random(bot, 16); /* now and then it just wanders */
    uint32_t aim = bot->input[1] + bot_random(bot, 65) - 32u;
    uint32_t whim = bot_random(bot, 8);
    if (pickup && (me->health < 45 || whim == 0)) {
        buttons = buttons_towards(pickup->x - me->x, pickup->y - me->y);
    } else if (enemy && whim < 6) {
        int64_t square = square_between(me->x, me->y, enemy->x, enemy->y);
        if (square > (int64_t)36 * ARENA_ONE * ARENA_ONE)
            buttons = buttons_towards(enemy->x - me->x, enemy->y - me->y);
        if (square < (int64_t)300 * ARENA_ONE * ARENA_ONE && can_see(state, me, enemy)) {
            /* Leads the target by ten frames, and is a little off, as people are. */
            aim = arena_direction(enemy->x + enemy->vx * 10 - me->x, enemy->y + enemy->vy * 10 - me->y) + bot_random(bot, 13) - 6u;
            buttons |= ARENA_FIRE;
        }
        if (bot_random(bot, 10) == 0)
            buttons |= ARENA_DASH;
    }
    bot->input[0] = buttons;
    bot->input[1] = (uint8_t)aim;
    bot->input[2] = (uint8_t)(160u + bot_random(bot, 96));
    if (bot_random(bot, 5) == 0)
        bot->input[3] = (uint8_t)bot_random(bot, 3);
    bot->hold = 8 + (int32_t)bot_random(bot, 13); /* 8 to 20 frames: 3 to 7.5 decisions a second at 60 Hz */
}

void arena_bot_think(arena_bot *bot, const arena_state *state, uint8_t input[ARENA_INPUT_SIZE])
{
    uint8_t before[ARENA_INPUT_SIZE];
    memcpy(before, bot->input, sizeof before);
    if (bot->hold-- <= 0 || bot->busy) {
        decide(bot, state);
        if (bot->busy && memcmp(before, bot->input, sizeof before) == 0)
            bot->input[1] ^= 1u;
    }
    memcpy(input, bot->input, ARENA_INPUT_SIZE);
}
