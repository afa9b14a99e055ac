/* The rules of the arena. See sim.h for what this file promises.
 *
 * How overflow is kept out: positions stay inside the map (64 × 65536 < 2^22), speeds are clamped to SPEED_MAX, products are
 * computed in 64 bits. How order is kept: every loop runs by index, every pool hands out places round robin. Signed values are
 * divided, never shifted: shifting a negative one to the right is the compiler's choice in C99, division is not.
 */
#include "sim.h"

#include <stddef.h>
#include <string.h>

#define ONE ARENA_ONE
#define SPEED_MAX (ONE * 9 / 20) /* below half a tile a frame nothing can skip a wall */
#define SHIP_RADIUS (ONE * 3 / 10)
#define HEALTH_MAX 100
#define SHIELD_MAX 60
#define ENERGY_MAX 120
#define RESPAWN_FRAMES 120
#define BLAST_RADIUS (ONE * 5 / 2)
#define SCRAP_MIN 220u /* the arena tops its debris up to this many pieces */

/* One quarter of a sine wave. A table of literals: libm's sine differs between machines. */
static const int32_t quarter[65] = {
    0, 1608, 3216, 4821, 6424, 8022, 9616, 11204, 12785, 14359, 15924, 17479, 19024,
    20557, 22078, 23586, 25080, 26558, 28020, 29466, 30893, 32303, 33692, 35062, 36410, 37736,
    39040, 40320, 41576, 42806, 44011, 45190, 46341, 47464, 48559, 49624, 50660, 51665, 52639,
    53581, 54491, 55368, 56212, 57022, 57798, 58538, 59244, 59914, 60547, 61145, 61705, 62228,
    62714, 63162, 63572, 63944, 64277, 64571, 64827, 65043, 65220, 65358, 65457, 65516, 65536,
};

typedef struct weapon {
    int32_t energy, reload, pellets, spread, speed, life, power, bounces;
    uint32_t kind;
} weapon;

static const weapon weapons[3] = {
    {6, 9, 1, 0, ONE * 2 / 5, 90, 20, 2, ARENA_BOLT},    /* blaster */
    {16, 24, 5, 6, ONE * 7 / 20, 28, 12, 1, ARENA_BOLT}, /* scatter */
    {30, 45, 1, 0, ONE * 1 / 4, 50, 70, 3, ARENA_SHELL}, /* mortar */
};

/* numbers ------------------------------------------------------------------------------------------------------------------ */

int32_t arena_sin(uint32_t angle)
{
    uint32_t in_quarter = angle & 63u;
    switch ((angle >> 6) & 3u) {
    case 0: return quarter[in_quarter];
    case 1: return quarter[64u - in_quarter];
    case 2: return -quarter[in_quarter];
    default: return -quarter[64u - in_quarter];
    }
}

int32_t arena_cos(uint32_t angle) { return arena_sin(angle + 64u); }

/* The direction whose unit vector has the largest dot product with the given one: no division, no arctangent. */
uint32_t arena_direction(int32_t dx, int32_t dy)
{
    uint32_t angle, best = 0;
    int64_t best_dot = INT64_MIN;
    for (angle = 0; angle < 256u; angle++) {
        int64_t dot = (int64_t)dx * arena_cos(angle) + (int64_t)dy * arena_sin(angle);
        if (dot > best_dot) {
            best_dot = dot;
            best = angle;
        }
    }
    return best;
}

static int32_t multiply(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b / ONE); }

static int32_t clamp(int32_t value, int32_t low, int32_t high) { return value < low ? low : value > high ? high : value; }

static int64_t distance_squared(int32_t ax, int32_t ay, int32_t bx, int32_t by)
{
    int64_t dx = (int64_t)ax - bx, dy = (int64_t)ay - by;
    return dx * dx + dy * dy;
}

static int within(int32_t ax, int32_t ay, int32_t bx, int32_t by, int32_t radius)
{
    return distance_squared(ax, ay, bx, by) < (int64_t)radius * radius;
}

/* PCG32. It lives in the state, so a rollback takes its draws back too. */
static uint32_t random_u32(arena_state *a)
{
    uint64_t old = a->rng;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27), turn = (uint32_t)(old >> 59);
    a->rng = old * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (mixed >> turn) | (mixed << ((32u - turn) & 31u));
}

/* 0..limit-1; the slight bias does not matter here, a rejection loop would cost more than it gives. */
static int32_t random_below(arena_state *a, uint32_t limit) { return (int32_t)(((uint64_t)random_u32(a) * limit) >> 32); }

/* -reach..reach */
static int32_t random_around(arena_state *a, int32_t reach) { return random_below(a, (uint32_t)reach * 2u + 1u) - reach; }

/* map ---------------------------------------------------------------------------------------------------------------------- */

int32_t arena_tile(int32_t x, int32_t y)
{
    return clamp(y / ONE, 0, ARENA_HEIGHT - 1) * ARENA_WIDTH + clamp(x / ONE, 0, ARENA_WIDTH - 1);
}

int arena_is_wall(const arena_state *a, int32_t x, int32_t y) { return (a->walls[arena_tile(x, y)] & 15u) != 0; }

static int is_blocked(const arena_state *a, int32_t x, int32_t y, int32_t radius)
{
    return arena_is_wall(a, x - radius, y - radius) || arena_is_wall(a, x + radius, y - radius) ||
           arena_is_wall(a, x - radius, y + radius) || arena_is_wall(a, x + radius, y + radius);
}

static int is_free_rect(const arena_state *a, int32_t x0, int32_t y0, int32_t x1, int32_t y1)
{
    int32_t x, y;
    for (y = y0; y < y1; y++)
        for (x = x0; x < x1; x++)
            if (a->walls[y * ARENA_WIDTH + x])
                return 0;
    return 1;
}

/* A border, and blocks that keep two tiles from each other, mirrored left to right. Convex blocks with gaps all around cannot
 * close anything off, so every floor tile can be reached from every other. */
static void build_map(arena_state *a)
{
    int32_t x, y, attempt;
    for (y = 0; y < ARENA_HEIGHT; y++)
        for (x = 0; x < ARENA_WIDTH; x++)
            if (x == 0 || y == 0 || x == ARENA_WIDTH - 1 || y == ARENA_HEIGHT - 1)
                a->walls[y * ARENA_WIDTH + x] = 0xff;
    for (attempt = 0; attempt < 160; attempt++) {
        int32_t width = 1 + random_below(a, 5), height = 1 + random_below(a, 4);
        int32_t left = 3 + random_below(a, (uint32_t)(ARENA_WIDTH / 2 - 4 - width));
        int32_t top = 3 + random_below(a, (uint32_t)(ARENA_HEIGHT - 6 - height));
        uint8_t hits = (uint8_t)(random_below(a, 3) == 0 ? 0xff : 0x33);
        if (!is_free_rect(a, left - 2, top - 2, left + width + 2, top + height + 2))
            continue;
        for (y = top; y < top + height; y++)
            for (x = left; x < left + width; x++)
                a->walls[y * ARENA_WIDTH + x] = a->walls[y * ARENA_WIDTH + ARENA_WIDTH - 1 - x] = hits;
    }
}

/* The middle of a random floor tile. A third of the map is wall at most, so 32 draws fail once in 10^15; then the middle of the
 * tile that came last is used, and whatever stands there takes care of itself. */
static void random_floor(arena_state *a, int32_t *x, int32_t *y)
{
    int32_t draw;
    for (draw = 0; draw < 32; draw++) {
        *x = (1 + random_below(a, ARENA_WIDTH - 2)) * ONE + ONE / 2;
        *y = (1 + random_below(a, ARENA_HEIGHT - 2)) * ONE + ONE / 2;
        if (!arena_is_wall(a, *x, *y))
            return;
    }
}

/* things ------------------------------------------------------------------------------------------------------------------- */

/* Takes the next free place of a pool. Never fails: when the pool is full its oldest thing gives way, on every peer the same. */
static arena_thing *take_place(arena_thing *pool, uint32_t count, uint32_t *next)
{
    uint32_t tried = 0;
    arena_thing *place;
    while (tried < count && pool[(*next + tried) % count].kind != ARENA_NOTHING)
        tried++;
    place = &pool[(*next + tried) % count]; /* after a whole round: the one it began with */
    *next = (*next + tried + 1u) % count;
    memset(place, 0, sizeof *place);
    return place;
}

static void add_scrap(arena_state *a, int32_t x, int32_t y, int32_t speed)
{
    arena_thing *piece = take_place(a->scrap, ARENA_SCRAP, &a->next_scrap);
    piece->kind = ARENA_DEBRIS;
    piece->owner = ARENA_PLAYERS;
    piece->x = x;
    piece->y = y;
    piece->vx = random_around(a, speed);
    piece->vy = random_around(a, speed);
    piece->life = 1 + random_below(a, 3);
    piece->angle = (uint32_t)random_below(a, 256);
}

/* Moves along both axes in turn and bounces off walls, keeping `keep` of 256 of the speed. Returns the tile that was hit, or
 * -1. */
static int32_t move(arena_state *a, int32_t *x, int32_t *y, int32_t *vx, int32_t *vy, int32_t radius, int32_t keep)
{
    int32_t hit = -1;
    *vx = clamp(*vx, -SPEED_MAX, SPEED_MAX);
    *vy = clamp(*vy, -SPEED_MAX, SPEED_MAX);
    if (is_blocked(a, *x + *vx, *y, radius)) {
        hit = arena_tile(*x + *vx + (*vx < 0 ? -radius : radius), *y);
        *vx = -(*vx * keep / 256);
    } else {
        *x += *vx;
    }
    if (is_blocked(a, *x, *y + *vy, radius)) {
        hit = arena_tile(*x, *y + *vy + (*vy < 0 ? -radius : radius));
        *vy = -(*vy * keep / 256);
    } else {
        *y += *vy;
    }
    return hit;
}

/* One hit on a wall; a brick that breaks becomes debris. */
static void damage_wall(arena_state *a, int32_t tile)
{
    uint32_t hits_left = a->walls[tile] & 15u;
    int32_t piece;
    if (hits_left == 0 || hits_left == 15u)
        return;
    a->walls[tile]--;
    if (hits_left == 1u)
        for (piece = 0; piece < 4; piece++)
            add_scrap(a, tile % ARENA_WIDTH * ONE + ONE / 2, tile / ARENA_WIDTH * ONE + ONE / 2, ONE / 8);
}

/* ships -------------------------------------------------------------------------------------------------------------------- */

static int is_solid(const arena_ship *ship) { return ship->mode == ARENA_SHIP_ALIVE || ship->mode == ARENA_SHIP_WRECK; }

/* The best of eight random places: the one whose nearest other ship is farthest away. */
static void respawn(arena_state *a, uint32_t slot)
{
    arena_ship *ship = &a->ships[slot];
    int64_t best = -1;
    int32_t draw;
    for (draw = 0; draw < 8; draw++) {
        int32_t x, y;
        int64_t nearest = INT64_MAX;
        uint32_t other;
        random_floor(a, &x, &y);
        for (other = 0; other < a->player_count; other++) {
            int64_t distance = distance_squared(x, y, a->ships[other].x, a->ships[other].y);
            if (other != slot && is_solid(&a->ships[other]) && distance < nearest)
                nearest = distance;
        }
        if (nearest > best) {
            best = nearest;
            ship->x = x;
            ship->y = y;
        }
    }
    ship->vx = ship->vy = 0;
    ship->mode = ARENA_SHIP_ALIVE;
    ship->health = HEALTH_MAX;
    ship->shield = SHIELD_MAX / 2; /* a moment's grace */
    ship->energy = ENERGY_MAX;
    ship->reload = ship->dash_wait = ship->respawn = 0;
}

static void add_pickup(arena_state *a, int32_t x, int32_t y)
{
    arena_thing *pickup = take_place(a->pickups, ARENA_PICKUPS, &a->next_pickup);
    pickup->kind = ARENA_HEALTH + (uint32_t)random_below(a, 3);
    pickup->owner = ARENA_PLAYERS;
    pickup->x = x;
    pickup->y = y;
    pickup->life = 1200;
}

/* `by` is the slot that did it, or ARENA_PLAYERS for the arena itself. */
static void damage_ship(arena_state *a, uint32_t slot, int32_t amount, uint32_t by)
{
    arena_ship *ship = &a->ships[slot];
    int32_t absorbed = amount < ship->shield ? amount : ship->shield, piece;
    if (!is_solid(ship))
        return;
    ship->shield -= absorbed;
    ship->health -= amount - absorbed;
    if (ship->health > 0)
        return;
    for (piece = 0; piece < 14; piece++)
        add_scrap(a, ship->x, ship->y, ONE / 3);
    a->heat[arena_tile(ship->x, ship->y)] = 255;
    if (ship->mode == ARENA_SHIP_WRECK) {
        ship->mode = ARENA_SHIP_GONE;
        return;
    }
    ship->mode = ARENA_SHIP_DEAD;
    ship->respawn = RESPAWN_FRAMES;
    ship->deaths++;
    if (by < a->player_count && by != slot) {
        a->ships[by].kills++;
        a->ships[by].score += 10;
    } else {
        ship->score -= 5;
    }
    add_pickup(a, ship->x, ship->y);
}

/* Hurts and pushes what is near, breaks bricks and leaves the floor hot. */
static void explode(arena_state *a, int32_t x, int32_t y, int32_t power, uint32_t owner)
{
    int32_t dx, dy;
    uint32_t i;
    for (dy = -2; dy <= 2; dy++)
        for (dx = -2; dx <= 2; dx++)
            if (dx * dx + dy * dy <= 5) {
                int32_t tile = arena_tile(x + dx * ONE, y + dy * ONE);
                a->heat[tile] = (uint8_t)(255 - 25 * (dx * dx + dy * dy));
                damage_wall(a, tile);
            }
    for (i = 0; i < ARENA_SCRAP; i++) {
        arena_thing *piece = &a->scrap[i];
        if (piece->kind != ARENA_NOTHING && within(x, y, piece->x, piece->y, BLAST_RADIUS)) {
            piece->vx += (piece->x - x) / 8;
            piece->vy += (piece->y - y) / 8;
        }
    }
    for (i = 0; i < a->player_count; i++) {
        arena_ship *ship = &a->ships[i];
        if (!is_solid(ship) || !within(x, y, ship->x, ship->y, BLAST_RADIUS))
            continue;
        ship->vx += (ship->x - x) / 6;
        ship->vy += (ship->y - y) / 6;
        /* Full damage in the middle, a quarter at the rim; by the square of the distance, which needs no root. */
        damage_ship(a, i,
            power - (int32_t)(distance_squared(x, y, ship->x, ship->y) * (power * 3 / 4) / ((int64_t)BLAST_RADIUS * BLAST_RADIUS)),
            owner);
    }
}

static void fire(arena_state *a, uint32_t slot)
{
    arena_ship *ship = &a->ships[slot];
    const weapon *w = &weapons[ship->weapon];
    int32_t pellet;
    if (ship->reload > 0 || ship->energy < w->energy)
        return;
    ship->energy -= w->energy;
    ship->reload = w->reload;
    for (pellet = 0; pellet < w->pellets; pellet++) {
        arena_thing *shot = take_place(a->shots, ARENA_SHOTS, &a->next_shot);
        uint32_t angle = ship->aim + (uint32_t)((pellet - w->pellets / 2) * w->spread); /* wraps as an angle does */
        shot->kind = w->kind;
        shot->owner = slot;
        shot->angle = angle & 255u;
        shot->x = ship->x;
        shot->y = ship->y;
        shot->vx = multiply(arena_cos(angle), w->speed) + ship->vx / 4;
        shot->vy = multiply(arena_sin(angle), w->speed) + ship->vy / 4;
        shot->life = w->life;
        shot->power = w->power;
        shot->bounces = w->bounces;
    }
    ship->vx -= multiply(arena_cos(ship->aim), ONE / 64) * w->pellets; /* recoil */
    ship->vy -= multiply(arena_sin(ship->aim), ONE / 64) * w->pellets;
}

static void step_pilot(arena_state *a, uint32_t slot, const uint8_t *input)
{
    arena_ship *ship = &a->ships[slot];
    uint32_t buttons = input[0];
    int32_t right = ((buttons & ARENA_RIGHT) != 0) - ((buttons & ARENA_LEFT) != 0);
    int32_t down = ((buttons & ARENA_DOWN) != 0) - ((buttons & ARENA_UP) != 0);
    int32_t thrust = ONE / 60 * input[2] / 255;
    if (right != 0 && down != 0)
        thrust = thrust * 181 / 256; /* one over the root of two */
    ship->aim = input[1];
    ship->weapon = input[3] % 3u;
    ship->vx += right * thrust;
    ship->vy += down * thrust;
    if ((buttons & ARENA_DASH) && ship->dash_wait == 0 && ship->energy >= 25 && (right != 0 || down != 0)) {
        ship->vx += right * ONE / 4;
        ship->vy += down * ONE / 4;
        ship->energy -= 25;
        ship->dash_wait = 60;
    }
    if (ship->energy < ENERGY_MAX && a->frame % 4u == 0)
        ship->energy++;
    if (buttons & ARENA_FIRE)
        fire(a, slot);
}

static void step_ship(arena_state *a, uint32_t slot, const uint8_t *input, uint32_t status)
{
    arena_ship *ship = &a->ships[slot];
    if (status & (ARENA_STATUS_DISCONNECTED | ARENA_STATUS_UNUSED)) {
        /* Nobody flies it any more. Its body stays a while: what others fired at it must still hit something. */
        if (ship->mode == ARENA_SHIP_ALIVE) {
            ship->mode = ARENA_SHIP_WRECK;
            ship->shield = 0;
        } else if (ship->mode == ARENA_SHIP_DEAD) {
            ship->mode = ARENA_SHIP_GONE;
        }
    }
    if (ship->reload > 0)
        ship->reload--;
    if (ship->dash_wait > 0)
        ship->dash_wait--;
    if (ship->mode == ARENA_SHIP_DEAD && --ship->respawn <= 0)
        respawn(a, slot);
    else if (ship->mode == ARENA_SHIP_ALIVE)
        step_pilot(a, slot, input);
    if (!is_solid(ship))
        return;
    ship->vx -= ship->vx / 16;
    ship->vy -= ship->vy / 16;
    move(a, &ship->x, &ship->y, &ship->vx, &ship->vy, SHIP_RADIUS, 128);
    if (a->heat[arena_tile(ship->x, ship->y)] > 160 && a->frame % 8u == 0)
        damage_ship(a, slot, 1, ARENA_PLAYERS);
    if (ship->mode == ARENA_SHIP_WRECK && a->frame % 6u == 0) {
        ship->aim = (ship->aim + 3u) & 255u;
        add_scrap(a, ship->x, ship->y, ONE / 16);
        damage_ship(a, slot, 2, ARENA_PLAYERS);
    }
}

/* Ships that overlap push each other away, softly, so that three in a corner come to rest. */
static void push_ships_apart(arena_state *a)
{
    uint32_t i, j;
    for (i = 0; i < a->player_count; i++)
        for (j = i + 1u; j < a->player_count; j++) {
            arena_ship *one = &a->ships[i], *two = &a->ships[j];
            int32_t dx, dy;
            if (!is_solid(one) || !is_solid(two) || !within(one->x, one->y, two->x, two->y, SHIP_RADIUS * 2))
                continue;
            dx = (two->x - one->x) / 10 + (two->x == one->x ? ONE / 64 : 0);
            dy = (two->y - one->y) / 10;
            one->vx -= dx;
            one->vy -= dy;
            two->vx += dx;
            two->vy += dy;
        }
}

/* the rest of the arena ---------------------------------------------------------------------------------------------------- */

static void step_shot(arena_state *a, arena_thing *shot)
{
    int32_t wall = move(a, &shot->x, &shot->y, &shot->vx, &shot->vy, 0, 256);
    uint32_t slot;
    int is_over = --shot->life <= 0;
    if (wall >= 0) {
        if (shot->kind == ARENA_BOLT)
            damage_wall(a, wall);
        shot->angle = arena_direction(shot->vx, shot->vy);
        shot->owner |= 32u; /* having bounced, it may hit who fired it */
        is_over |= --shot->bounces < 0;
    }
    for (slot = 0; slot < a->player_count && !is_over; slot++) {
        if (slot == shot->owner || !is_solid(&a->ships[slot]) ||
            !within(shot->x, shot->y, a->ships[slot].x, a->ships[slot].y, SHIP_RADIUS * 3 / 2))
            continue;
        is_over = 1;
        if (shot->kind == ARENA_SHELL)
            break; /* the blast below does the damage */
        a->ships[slot].vx += shot->vx / 3;
        a->ships[slot].vy += shot->vy / 3;
        if ((shot->owner & 31u) != slot)
            a->ships[shot->owner & 31u].score++;
        damage_ship(a, slot, shot->power, shot->owner & 31u);
    }
    if (!is_over)
        return;
    if (shot->kind == ARENA_SHELL)
        explode(a, shot->x, shot->y, shot->power, shot->owner & 31u);
    shot->kind = ARENA_NOTHING;
}

static void step_scrap(arena_state *a, arena_thing *piece)
{
    int32_t speed;
    uint32_t slot;
    if (arena_is_wall(a, piece->x, piece->y)) { /* a brick grew back around it */
        piece->kind = ARENA_NOTHING;
        return;
    }
    move(a, &piece->x, &piece->y, &piece->vx, &piece->vy, 0, 200);
    speed = (piece->vx < 0 ? -piece->vx : piece->vx) + (piece->vy < 0 ? -piece->vy : piece->vy);
    piece->angle = (piece->angle + (uint32_t)speed / 2048u) & 255u;
    if (speed > ONE / 64) { /* below that it keeps drifting */
        piece->vx -= piece->vx / 48;
        piece->vy -= piece->vy / 48;
    }
    for (slot = 0; slot < a->player_count; slot++) {
        arena_ship *ship = &a->ships[slot];
        if (ship->mode != ARENA_SHIP_ALIVE || !within(piece->x, piece->y, ship->x, ship->y, SHIP_RADIUS * 3 / 2))
            continue;
        piece->kind = ARENA_NOTHING;
        if (speed > ONE / 5)
            damage_ship(a, slot, piece->life * 2, ARENA_PLAYERS);
        else
            ship->energy = clamp(ship->energy + piece->life * 3, 0, ENERGY_MAX);
        return;
    }
}

static void step_pickup(arena_state *a, arena_thing *pickup)
{
    uint32_t slot;
    if (--pickup->life <= 0)
        pickup->kind = ARENA_NOTHING;
    for (slot = 0; slot < a->player_count && pickup->kind != ARENA_NOTHING; slot++) {
        arena_ship *ship = &a->ships[slot];
        if (ship->mode != ARENA_SHIP_ALIVE || !within(pickup->x, pickup->y, ship->x, ship->y, SHIP_RADIUS * 2))
            continue;
        if (pickup->kind == ARENA_HEALTH)
            ship->health = clamp(ship->health + 40, 0, HEALTH_MAX);
        else if (pickup->kind == ARENA_SHIELD)
            ship->shield = SHIELD_MAX;
        else
            ship->energy = ENERGY_MAX;
        ship->score += 2;
        pickup->kind = ARENA_NOTHING;
    }
}

/* One random brick a frame may grow back, where no ship would be caught in it. */
static void repair_wall(arena_state *a)
{
    int32_t x = random_below(a, ARENA_WIDTH), y = random_below(a, ARENA_HEIGHT);
    uint8_t *tile = &a->walls[y * ARENA_WIDTH + x];
    uint32_t slot;
    for (slot = 0; slot < a->player_count; slot++)
        if (is_solid(&a->ships[slot]) && within(x * ONE + ONE / 2, y * ONE + ONE / 2, a->ships[slot].x, a->ships[slot].y, ONE * 2))
            return;
    *tile = (uint8_t)((*tile & 0xf0u) | (*tile >> 4));
}

static uint32_t count_alive(const arena_thing *pool, uint32_t count)
{
    uint32_t i, alive = 0;
    for (i = 0; i < count; i++)
        alive += pool[i].kind != ARENA_NOTHING;
    return alive;
}

/* the whole ---------------------------------------------------------------------------------------------------------------- */

void arena_init(arena_state *a, uint64_t seed, uint32_t player_count)
{
    uint32_t i;
    memset(a, 0, sizeof *a);
    a->player_count = player_count < 1u ? 1u : player_count > ARENA_PLAYERS ? ARENA_PLAYERS : player_count;
    a->rng = seed ^ UINT64_C(0x9e3779b97f4a7c15);
    (void)random_u32(a); /* near seeds draw alike at first */
    (void)random_u32(a);
    build_map(a);
    for (i = 0; i < a->player_count; i++)
        respawn(a, i);
    for (i = 0; i < SCRAP_MIN + 20u; i++) {
        int32_t x, y;
        random_floor(a, &x, &y);
        add_scrap(a, x, y, ONE / 100);
    }
    a->alive = SCRAP_MIN + 20u;
}

void arena_step(arena_state *a, const uint8_t *inputs, const uint16_t *sizes, uint64_t status)
{
    uint32_t i, scrap;
    for (i = 0; i < a->player_count; i++) {
        uint8_t input[ARENA_INPUT_SIZE] = {0};
        memcpy(input, inputs + i * ARENA_INPUT_SIZE, sizes[i] < ARENA_INPUT_SIZE ? sizes[i] : ARENA_INPUT_SIZE);
        step_ship(a, i, input, (uint32_t)(status >> (i * 4u)) & 15u);
    }
    push_ships_apart(a);
    for (i = 0; i < ARENA_SHOTS; i++)
        if (a->shots[i].kind != ARENA_NOTHING)
            step_shot(a, &a->shots[i]);
    for (i = 0; i < ARENA_SCRAP; i++)
        if (a->scrap[i].kind != ARENA_NOTHING)
            step_scrap(a, &a->scrap[i]);
    for (i = 0; i < ARENA_PICKUPS; i++)
        if (a->pickups[i].kind != ARENA_NOTHING)
            step_pickup(a, &a->pickups[i]);
    for (i = 0; i < ARENA_TILES; i++)
        a->heat[i] = (uint8_t)(a->heat[i] - (a->heat[i] != 0));
    repair_wall(a);
    scrap = count_alive(a->scrap, ARENA_SCRAP);
    if (scrap < SCRAP_MIN) {
        int32_t x, y;
        random_floor(a, &x, &y);
        add_scrap(a, x, y, ONE / 100);
    }
    if (a->frame % 90u == 89u) {
        int32_t x, y;
        random_floor(a, &x, &y);
        add_pickup(a, x, y);
    }
    a->alive = scrap + count_alive(a->shots, ARENA_SHOTS) + count_alive(a->pickups, ARENA_PICKUPS);
    for (i = 0; i < a->player_count; i++)
        a->alive += (uint32_t)is_solid(&a->ships[i]);
    a->frame++;
}

/* Eight bytes at a time, as a little-endian machine holds them; all that this sample runs on are. */
uint64_t arena_checksum(const arena_state *a)
{
    const uint8_t *bytes = (const uint8_t *)a;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    size_t i;
    for (i = 0; i + 8u <= sizeof *a; i += 8u) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        digest = (digest ^ word) * UINT64_C(0x9fb21c651e98df25);
        digest ^= digest >> 32;
    }
    return digest;
}

/* The state must have no padding (its bytes are compared) and be a multiple of what the digest reads. */
typedef char arena_state_has_no_padding[sizeof(arena_state) == 8 + 6 * 4 + ARENA_PLAYERS * 16 * 4 +
        (ARENA_SHOTS + ARENA_PICKUPS + ARENA_SCRAP) * 40 + 2 * ARENA_TILES &&
    sizeof(arena_state) % 8 == 0 ? 1 : -1];
