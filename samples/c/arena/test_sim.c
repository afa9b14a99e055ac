/* The simulation by itself: no library, no network.
 *
 *   cc -std=c99 -O0 test_sim.c sim.c bot.c -o test_sim && ./test_sim
 *   cc -std=c99 -O3 -fsanitize=undefined -fno-sanitize-recover test_sim.c sim.c bot.c -o test_sim && ./test_sim
 *
 * Both must print the same digest as every other compiler and machine: GOLDEN. A deliberate change of the rules changes it; print the
 * new one, look at a match with --view, and write it here.
 */
#include "bot.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define FRAMES 600u
#define PLAYERS 4u
#define SEED 1u
#define GOLDEN UINT64_C(0xc1254de6ab6bc68b)

static int failures;

static void check(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static uint8_t inputs[FRAMES][ARENA_PLAYERS * ARENA_INPUT_SIZE];
static uint64_t digests[FRAMES + 1u];
static const uint16_t sizes[ARENA_PLAYERS] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};

/* The golden match: four bots; its inputs are kept for the tests that play it again. */
static void play(arena_state *state)
{
    arena_bot bots[PLAYERS];
    uint32_t frame, i, fewest = 0xffffffffu, repeated = 0;
    int32_t kills = 0, score = 0;
    arena_init(state, SEED, PLAYERS);
    for (i = 0; i < PLAYERS; i++)
        arena_bot_init(&bots[i], SEED, i, 0);
    digests[0] = arena_checksum(state);
    for (frame = 0; frame < FRAMES; frame++) {
        for (i = 0; i < PLAYERS; i++)
            arena_bot_think(&bots[i], state, &inputs[frame][i * ARENA_INPUT_SIZE]);
        arena_step(state, inputs[frame], sizes, 0);
        digests[frame + 1u] = arena_checksum(state);
        repeated += digests[frame + 1u] == digests[frame];
        fewest = state->alive < fewest ? state->alive : fewest;
    }
    for (i = 0; i < PLAYERS; i++) {
        kills += state->ships[i].kills;
        score += state->ships[i].score;
    }
    printf("digest 0x%016llx, %u bytes, at least %u entities, %d kills, score %d\n", (unsigned long long)digests[FRAMES],
        (unsigned)sizeof *state, fewest, (int)kills, (int)score);
    check(digests[FRAMES] == GOLDEN, "the match ends in the golden state");
    check(repeated == 0, "every frame changes the state");
    check(fewest >= 200u, "at least 200 entities are there at any time");
    check(sizeof *state >= 20000u && sizeof *state <= 50000u, "the state has 20 to 50 KB");
    check(score > 0, "somebody hits somebody");
}

/* What a rollback does: go back to an older frame and compute again with the same inputs. */
static void resimulate(void)
{
    static arena_state state, saved;
    uint32_t frame, back;
    arena_init(&state, SEED, PLAYERS);
    for (frame = 0; frame < FRAMES; frame++) {
        if (frame % 10u == 0)
            saved = state;
        if (frame % 10u == 9u) {
            state = saved;
            for (back = frame - 9u; back < frame; back++)
                arena_step(&state, inputs[back], sizes, 0);
        }
        arena_step(&state, inputs[frame], sizes, 0);
        if (arena_checksum(&state) != digests[frame + 1u]) {
            check(0, "a loaded state goes the same way again");
            return;
        }
    }
}

static void every_input_byte_matters(void)
{
    static arena_state state, other;
    uint32_t byte, frame;
    for (byte = 0; byte < ARENA_INPUT_SIZE; byte++) {
        uint8_t input[ARENA_INPUT_SIZE] = {ARENA_FIRE | ARENA_RIGHT, 10, 200, 0}, changed[ARENA_INPUT_SIZE];
        memcpy(changed, input, sizeof changed);
        changed[byte] ^= 1u;
        arena_init(&state, SEED, 1);
        other = state;
        for (frame = 0; frame < 2u; frame++) {
            arena_step(&state, input, sizes, 0);
            arena_step(&other, changed, sizes, 0);
        }
        check(arena_checksum(&state) != arena_checksum(&other), "another byte of input makes another state");
    }
}

/* A leaver becomes a wreck, falls apart and never comes back; what its slot's input says is ignored. */
static void leaver(void)
{
    static arena_state state;
    uint32_t frame;
    uint8_t input[2u * ARENA_INPUT_SIZE] = {0};
    arena_init(&state, SEED, 2);
    memset(input, 0xff, ARENA_INPUT_SIZE);
    for (frame = 0; frame < 900u; frame++) {
        uint64_t status = frame < 100u ? 0 : ARENA_STATUS_DISCONNECTED;
        arena_step(&state, input, sizes, status);
        if (frame == 100u)
            check(state.ships[0].mode == ARENA_SHIP_WRECK || state.ships[0].mode == ARENA_SHIP_GONE, "who leaves becomes a wreck");
    }
    check(state.ships[0].mode == ARENA_SHIP_GONE, "a wreck falls apart for good");
    check(state.ships[1].mode == ARENA_SHIP_ALIVE, "the others fly on");
}

/* Nonsense from every slot, full house, for a minute: the sanitizer watches for overflow and bad indices. */
static void noise(void)
{
    static arena_state state;
    uint8_t input[ARENA_PLAYERS * ARENA_INPUT_SIZE];
    uint16_t odd_sizes[ARENA_PLAYERS];
    uint64_t rng = 99;
    uint32_t frame, i;
    arena_init(&state, 12345, 99);
    check(state.player_count == ARENA_PLAYERS, "the number of players is clamped");
    for (frame = 0; frame < 3600u; frame++) {
        for (i = 0; i < sizeof input; i++) {
            rng = rng * UINT64_C(6364136223846793005) + 1u;
            input[i] = (uint8_t)(rng >> 56);
            odd_sizes[i / ARENA_INPUT_SIZE] = (uint16_t)(rng >> 40 & 7u);
        }
        arena_step(&state, input, odd_sizes, frame > 3000u ? UINT64_C(0x2222) : 0);
        for (i = 0; i < ARENA_PLAYERS; i++)
            if (state.ships[i].x < 0 || state.ships[i].x >= ARENA_WIDTH * ARENA_ONE || state.ships[i].y < 0 ||
                state.ships[i].y >= ARENA_HEIGHT * ARENA_ONE) {
                check(0, "every ship stays inside the arena");
                return;
            }
    }
}

int main(void)
{
    static arena_state state;
    play(&state);
    resimulate();
    every_input_byte_matters();
    leaver();
    noise();
    printf("test_sim: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
