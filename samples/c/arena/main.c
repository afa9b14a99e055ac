/* arena: a match of 2 to 16 players over retick, without a server.
 *
 * Build, from the root of the repository after `cargo build --release` (or with -Ltarget/release -lretick for the shared library):
 *
 *   cc -std=c99 -O2 -Iinclude samples/c/arena/main.c samples/c/arena/peer.c samples/c/arena/sim.c samples/c/arena/bot.c \
 *      samples/c/arena/view.c samples/c/arena/term.c -o arena target/release/libretick.a -lpthread -ldl -lm
 *
 * Two peers on one machine: `./arena --host` prints a line `room HEX port N`; then `./arena --join 127.0.0.1:N --room HEX`.
 * A whole match in one process over a simulated network: `./arena --simnet 4 --loss 5 --latency 60`.
 */
#include "peer.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "arena --host [--port N] | --join ADDRESS --room HEX64 | --simnet PEERS\n"
    "  match     --peers N (2; the host starts when so many are ready)  --slots K (1; players here)  --frames F (3600)\n"
    "            --rate HZ (60)  --delay FRAMES (2)  --window FRAMES (16)  --desync-level 0|1|2 (1)\n"
    "  network   --latency MS  --jitter MS  --loss PERCENT  --dup PERCENT (of what this peer sends)\n"
    "            --suspect-ms MS (150)  --cut-ms MS (400)  --timeout-ms MS (30000; without any progress)\n"
    "  players   --bot (default)  --busy (bots change their input every frame)  --play (keys: wasd, space fires, q e aim,\n"
    "            x dashes, 1 2 3 weapon)  --seed N (of the bots and of the bad network)\n"
    "  output    --quiet  --view  --trace FILE (a line for each confirmed frame)\n"
    "  tests     --form list|callbacks  --exit-at FRAME (dies)  --hang-at FRAME --hang-ms MS (sleeps); in simnet the last peer\n";

static int parse_room(const char *hex, uint8_t room[32])
{
    uint32_t i;
    if (strlen(hex) != 64u || strspn(hex, "0123456789abcdefABCDEF") != 64u)
        return 0;
    for (i = 0; i < 32u; i++) {
        char byte[3] = {hex[2u * i], hex[2u * i + 1u], 0};
        room[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return 1;
}

static void default_options(arena_options *o)
{
    memset(o, 0, sizeof *o);
    o->peers = 2;
    o->slots = 1;
    o->frames = 3600;
    o->rate = 60;
    o->delay = 2;
    o->window = 16;
    o->desync_level = 1;
    o->suspect_ms = 150;
    o->cut_ms = 400;
    o->timeout_ms = 30000;
    o->seed = 1;
    o->exit_at = o->hang_at = -1;
}

/* Options with a number, as a table: name, where it goes, and what one unit of it is there. */
static int set_number(arena_options *o, const char *name, const char *text)
{
    const struct {
        const char *name;
        uint32_t *field;
        double unit;
    } numbers[] = {
        {"--port", &o->port, 1}, {"--peers", &o->peers, 1}, {"--slots", &o->slots, 1}, {"--rate", &o->rate, 1},
        {"--delay", &o->delay, 1}, {"--window", &o->window, 1}, {"--desync-level", &o->desync_level, 1},
        {"--suspect-ms", &o->suspect_ms, 1}, {"--cut-ms", &o->cut_ms, 1}, {"--timeout-ms", &o->timeout_ms, 1},
        {"--latency", &o->latency_us, 1000}, {"--jitter", &o->jitter_us, 1000}, {"--loss", &o->loss_ppm, 10000},
        {"--dup", &o->duplicate_ppm, 10000}, {"--hang-ms", &o->hang_ms, 1}, {"--simnet", &o->simnet, 1},
    };
    char *end;
    double value = strtod(text, &end);
    uint32_t i;
    if (end == text || *end != 0 || value < 0 || value > 1e9)
        return 0;
    if (strcmp(name, "--frames") == 0)
        o->frames = (int32_t)value;
    else if (strcmp(name, "--exit-at") == 0)
        o->exit_at = (int32_t)value;
    else if (strcmp(name, "--hang-at") == 0)
        o->hang_at = (int32_t)value;
    else if (strcmp(name, "--seed") == 0)
        o->seed = (uint64_t)value;
    else {
        for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            if (strcmp(name, numbers[i].name) == 0) {
                *numbers[i].field = (uint32_t)(value * numbers[i].unit + 0.5);
                return 1;
            }
        return 0;
    }
    return 1;
}

/* Returns what is wrong, or NULL. */
static const char *parse_options(arena_options *o, int count, char **words)
{
    int i, is_host = 0, has_room = 0;
    for (i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        if (strcmp(word, "--host") == 0)
            is_host = 1;
        else if (strcmp(word, "--bot") == 0)
            o->play = 0;
        else if (strcmp(word, "--play") == 0)
            o->play = 1;
        else if (strcmp(word, "--busy") == 0)
            o->busy = 1;
        else if (strcmp(word, "--quiet") == 0)
            o->quiet = 1;
        else if (strcmp(word, "--view") == 0)
            o->view = 1;
        else if (!value)
            return word;
        else if (strcmp(word, "--join") == 0)
            o->join = value, i++;
        else if (strcmp(word, "--trace") == 0)
            o->trace = value, i++;
        else if (strcmp(word, "--room") == 0 && parse_room(value, o->room))
            has_room = 1, i++;
        else if (strcmp(word, "--form") == 0 && (strcmp(value, "list") == 0 || strcmp(value, "callbacks") == 0))
            o->callbacks = value[0] == 'c', i++;
        else if (set_number(o, word, value))
            i++;
        else
            return word;
    }
    if (is_host + (o->join != NULL) + (o->simnet != 0) != 1)
        return "give one of --host, --join and --simnet";
    if (o->join && !has_room)
        return "--join needs --room";
    if (o->simnet && (o->simnet < 2 || o->simnet > ARENA_MAX_PEERS))
        return "--simnet takes 2 to 16";
    if (o->frames < 1 || o->peers < 1 || o->peers > ARENA_MAX_PEERS || o->slots < 1 || o->rate < 1)
        return "--frames, --peers, --slots or --rate";
    return NULL;
}

/* `room HEX port N`, which a launcher reads to start the others. */
static int print_room(const arena_peer *peer)
{
    uint8_t room[32];
    char address[80] = "", *colon;
    uint32_t length, i;
    if (retick_mesh_room(peer->mesh, room) != RETICK_OK ||
        retick_mesh_local_address(peer->mesh, address, sizeof address, &length) != RETICK_OK)
        return 0;
    colon = strrchr(address, ':');
    printf("room ");
    for (i = 0; i < 32u; i++)
        printf("%02x", room[i]);
    printf(" port %s\n", colon ? colon + 1 : "0");
    fflush(stdout);
    return 1;
}

/* Over sockets: this process is one peer, and the clock on the wall drives it. */
static int run_networked(const arena_options *options)
{
    static arena_peer peer;
    static const retick_simnet no_net = {0};
    int has_printed_room = options->join != NULL;
    if (arena_peer_open(&peer, options, no_net, 0) != ARENA_OK)
        return peer.outcome;
    term_catch_interrupt();
    if (options->play && !term_open_keys())
        fprintf(stderr, "arena: no terminal to read keys from\n");
    if (options->view)
        fputs("\033[2J", stdout);
    while (arena_peer_turn(&peer, term_now_us())) {
        if (!has_printed_room && peer.phase >= ARENA_LOBBY)
            has_printed_room = print_room(&peer);
        if (term_interrupted())
            arena_peer_quit(&peer, term_now_us());
        term_sleep_us(1000);
    }
    if (!options->quiet)
        putchar('\n');
    arena_peer_figures(&peer, stdout);
    arena_peer_close(&peer);
    return peer.outcome;
}

/* In one process, over a network of our own making, in virtual time: nothing waits, and the same seed gives the same match. */
static int run_simulated(const arena_options *options)
{
    static arena_peer peers[ARENA_MAX_PEERS];
    arena_options host = *options, guest = *options, last;
    retick_simnet net;
    retick_link link;
    uint64_t now_us = 0;
    uint32_t i, count = options->simnet, opened = 1, going = 1;
    clock_t began = clock();
    int outcome;
    host.peers = guest.peers = count;
    host.exit_at = guest.exit_at = host.hang_at = guest.hang_at = -1; /* what goes wrong on purpose goes wrong at the last peer */
    guest.join = "sim:0";
    last = guest;
    last.exit_at = options->exit_at;
    last.hang_at = options->hang_at;
    retick_link_init(&link, sizeof link);
    link.latency_us = options->latency_us;
    link.jitter_us = options->jitter_us;
    link.loss_ppm = options->loss_ppm;
    link.duplicate_ppm = options->duplicate_ppm;
    if (retick_simnet_create(options->seed, &net) != RETICK_OK ||
        retick_simnet_set_link(net, RETICK_ALL_PEERS, RETICK_ALL_PEERS, &link) != RETICK_OK) {
        fprintf(stderr, "arena: the simulated network cannot be made\n");
        return ARENA_FAILED;
    }
    outcome = arena_peer_open(&peers[0], &host, net, 0);
    while (going && outcome == ARENA_OK) {
        if (opened == 1 && peers[0].phase >= ARENA_LOBBY && retick_mesh_room(peers[0].mesh, guest.room) == RETICK_OK) {
            memcpy(last.room, guest.room, sizeof last.room);
            for (; opened < count && outcome == ARENA_OK; opened++)
                outcome = arena_peer_open(&peers[opened], opened + 1 == count ? &last : &guest, net, opened);
        }
        going = 0;
        for (i = 0; i < opened; i++) {
            going += (uint32_t)arena_peer_turn(&peers[i], now_us + 1u);
            if (peers[i].outcome == ARENA_CRASHED)
                retick_simnet_set_paused(net, i, 1);
        }
        retick_simnet_advance(net, 1000);
        now_us += 1000u;
    }
    for (i = 0; i < opened; i++) {
        int is_survivor = peers[i].outcome != ARENA_CRASHED;
        arena_peer_figures(&peers[i], stdout);
        if (is_survivor && outcome == ARENA_OK)
            outcome = peers[i].outcome;
        if (is_survivor && outcome == ARENA_OK && peers[i].history != peers[0].history)
            outcome = ARENA_DESYNC;
    }
    printf("simnet peers=%u frames=%d virtual_s=%.1f cpu_s=%.2f outcome=%d\n", count, (int)options->frames, (double)now_us / 1e6,
        (double)(clock() - began) / CLOCKS_PER_SEC, outcome);
    for (i = 0; i < opened; i++)
        arena_peer_close(&peers[i]);
    retick_simnet_destroy(net);
    return outcome;
}

int main(int count, char **words)
{
    arena_options options;
    const char *wrong;
    int outcome;
    default_options(&options);
    wrong = parse_options(&options, count, words);
    if (wrong) {
        fprintf(stderr, "arena: this is not understood: %s\n%s", wrong, usage);
        return ARENA_FAILED;
    }
    outcome = options.simnet ? run_simulated(&options) : run_networked(&options);
    retick_shutdown();
    return outcome;
}
