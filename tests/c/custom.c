/* custom.c - B35: many sessions in one process, without globals: ten peers over an in-memory relay (the game's own
 * transport), and three over IPv6, at the same time. */
#include "common.h"

#define RELAYED 10
#define OVER_IPV6 3

static peer peers[RELAYED + OVER_IPV6];

/* The relay: a datagram out is a datagram in. Addresses are "peer-<letter>". */
static void carry(void) {
    uint32_t i;
    for (i = 0; i < RELAYED; i++) {
        const uint8_t *address, *data;
        uint32_t address_size, size;
        while (retick_mesh_next_outgoing(peers[i].mesh, &address, &address_size, &data, &size) == RETICK_OK) {
            char from[8] = "peer-a";
            uint32_t to = (uint32_t)(address[5] - 'a');
            retick_result result;
            CHECK(address_size == 6 && memcmp(address, "peer-", 5) == 0 && to < RELAYED && to != i && size <= 1200);
            from[5] = (char)('a' + i);
            result = retick_mesh_receive(peers[to].mesh, (const uint8_t *)from, 6, data, size);
            CHECK(result == RETICK_OK);
        }
    }
}

static void open_peer(peer *p, uint32_t index, uint32_t players, retick_mesh_config *config) {
    p->index = index;
    p->players = players;
    p->changing = 4;
    p->is_host = p->wants_start = index == 0;
    p->form = index % 2 ? FORM_LIST : FORM_CALLBACKS;
    /* All peers share one thread, and a busy machine may keep it from one of them for longer than a match would wait. */
    config->cut_after_ms = config->forget_after_ms = 0;
    OK(retick_mesh_create(config, &p->mesh));
    open_session(p, NULL);
}

static uint32_t least_frame(void) {
    uint32_t i, least = 0xffffffffu;
    for (i = 0; i < RELAYED + OVER_IPV6; i++) if (peers[i].now.frame < least) least = peers[i].now.frame;
    return least;
}

int main(int count, char **arguments) {
    retick_mesh_config config;
    uint8_t room[32];
    char address[64], text[64];
    uint32_t i, over_ipv6 = count > 1 && strcmp(arguments[1], "no-ipv6") == 0 ? 0 : OVER_IPV6;
    uint64_t first, other;
    for (i = 0; i < RELAYED; i++) {
        char local[8] = "peer-a";
        local[5] = (char)('a' + i);
        OK(retick_mesh_config_init(&config, sizeof config));
        config.io_mode = RETICK_IO_CUSTOM;
        config.max_peers = RELAYED;
        config.max_datagram = 600;
        config.local_address = (const uint8_t *)local;
        config.local_address_size = 6;
        open_peer(&peers[i], i, RELAYED, &config);
    }
    OK(retick_mesh_local_address(peers[2].mesh, text, sizeof text, NULL));
    CHECK(strcmp(text, "peer-c") == 0);
    EXPECT(retick_mesh_join(peers[1].mesh, "1.2.3.4:5", room), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_mesh_receive(peers[1].mesh, (const uint8_t *)"peer-a", 6, room, 1201), RETICK_ERR_TOO_LARGE);
    OK(retick_mesh_host(peers[0].mesh));
    while (retick_mesh_room(peers[0].mesh, room) != RETICK_OK) run_peer(&peers[0]);
    for (i = 1; i < RELAYED; i++) OK(retick_mesh_join_custom(peers[i].mesh, (const uint8_t *)"peer-a", 6, room));
    for (i = 0; i < over_ipv6; i++) {
        peer *p = &peers[RELAYED + i];
        OK(retick_mesh_config_init(&config, sizeof config));
        config.bind_address = "::1";
        config.io_mode = i == 2 ? RETICK_IO_MANUAL : RETICK_IO_THREAD;
        open_peer(p, i, OVER_IPV6, &config);
        if (i == 0) {
            OK(retick_mesh_host(p->mesh));
            while (retick_mesh_room(p->mesh, room) != RETICK_OK) run_peer(p);
            OK(retick_mesh_local_address(p->mesh, address, sizeof address, NULL));
            CHECK(strncmp(address, "[::1]:", 6) == 0);
        } else {
            OK(retick_mesh_join(p->mesh, address, room));
        }
    }
    for (i = over_ipv6; i < OVER_IPV6; i++) peers[RELAYED + i].now.frame = 1000;
    while (least_frame() < 150) {
        for (i = 0; i < RELAYED + over_ipv6; i++) {
            if (i == RELAYED + 2) OK(retick_io_turn(peers[i].mesh, 100));
            run_peer(&peers[i]);
            carry();
        }
    }
    OK(retick_session_confirmed_checksum(peers[0].session, 90, &first));
    for (i = 1; i < RELAYED; i++) {
        OK(retick_session_confirmed_checksum(peers[i].session, 90, &other));
        EXPECT(other, first);
    }
    for (i = 0; i < over_ipv6; i++) {
        OK(retick_session_confirmed_checksum(peers[RELAYED + i].session, 90, &other));
        CHECK(other != first);
        if (i > 0) EXPECT(peers[RELAYED + i].trace != 0, 1);
    }
    OK(retick_shutdown());
    return 0;
}
