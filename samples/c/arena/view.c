/* See view.h. */
#include "view.h"

#include <stdio.h>
#include <string.h>

#define ROWS (ARENA_HEIGHT / 2)

/* ANSI 256 colours, one a player. */
static const uint8_t colours[ARENA_PLAYERS] = {196, 39, 46, 226, 201, 51, 208, 129, 118, 214, 21, 199, 87, 155, 220, 141};

typedef struct cell {
    uint8_t rank; /* what is drawn over what */
    char sign;
    uint8_t colour, reversed;
} cell;

static cell cells[ROWS][ARENA_WIDTH];

static void put(int32_t tile, uint8_t rank, char sign, uint8_t colour, uint8_t reversed)
{
    cell *at = &cells[tile / ARENA_WIDTH / 2][tile % ARENA_WIDTH];
    if (rank < at->rank)
        return;
    at->rank = rank;
    at->sign = sign;
    at->colour = colour;
    at->reversed = reversed;
}

static void put_things(const arena_thing *pool, uint32_t count)
{
    static const char signs[7] = {' ', '*', 'o', '+', 'D', '%', ','};
    uint32_t i;
    for (i = 0; i < count; i++)
        if (pool[i].kind != ARENA_NOTHING)
            put(arena_tile(pool[i].x, pool[i].y), pool[i].kind == ARENA_DEBRIS ? 2 : 4, signs[pool[i].kind],
                (pool[i].owner & 31u) < ARENA_PLAYERS ? colours[pool[i].owner & 15u] : pool[i].kind == ARENA_DEBRIS ? 240 : 255, 0);
}

void arena_draw(const arena_state *state, uint32_t local_slots)
{
    int32_t tile, row, column;
    uint32_t i;
    int last = -1;
    memset(cells, 0, sizeof cells);
    for (tile = 0; tile < ARENA_TILES; tile++) {
        uint32_t hits_left = state->walls[tile] & 15u;
        if (hits_left != 0)
            put(tile, 3, hits_left == 15u ? '#' : hits_left == 3u ? 'H' : 'h', hits_left == 15u ? 245 : 137, 0);
        else if (state->heat[tile] > 40)
            put(tile, 1, state->heat[tile] > 160 ? '^' : '~', state->heat[tile] > 160 ? 202 : 88, 0);
        else
            put(tile, 0, ' ', 0, 0);
    }
    put_things(state->scrap, ARENA_SCRAP);
    put_things(state->pickups, ARENA_PICKUPS);
    put_things(state->shots, ARENA_SHOTS);
    for (i = 0; i < state->player_count; i++) {
        const arena_ship *ship = &state->ships[i];
        if (ship->mode == ARENA_SHIP_ALIVE)
            put(arena_tile(ship->x, ship->y), 6, (char)('A' + i), colours[i], (uint8_t)(local_slots >> i & 1u));
        else if (ship->mode == ARENA_SHIP_WRECK)
            put(arena_tile(ship->x, ship->y), 5, 'x', 250, 0);
    }
    fputs("\033[H", stdout);
    for (row = 0; row < ROWS; row++) {
        for (column = 0; column < ARENA_WIDTH; column++) {
            const cell *at = &cells[row][column];
            int look = at->colour | at->reversed << 8;
            if (look != last) /* most neighbours look alike */
                printf("\033[0;%s38;5;%dm", at->reversed ? "7;" : "", at->colour);
            last = look;
            putchar(at->sign);
        }
        fputs("\033[K\n", stdout);
    }
    for (i = 0; i < state->player_count; i++)
        printf("\033[0;38;5;%dm%c %d%s ", colours[i], (char)('A' + i), (int)state->ships[i].score,
            state->ships[i].mode >= ARENA_SHIP_WRECK ? " left" : "");
    fputs("\033[0m\033[K\n", stdout);
}
