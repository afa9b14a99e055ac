/* sockets.c - real sockets: a bad link on purpose, messages until the queues are full, log lines of the IO thread, and
 * what a session says whose mesh is gone. */
#include "common.h"

static uint32_t lines, lines_by_level[6];

static void on_log(void *user, uint32_t level, const char *target, const char *message) {
    CHECK(user == &lines && level >= 1 && level <= 5 && strncmp(target, "retick", 6) == 0 && message[0] != 0);
    lines++;
    lines_by_level[level]++;
}

int main(void) {
    static peer peers[2];
    retick_mesh_config config;
    retick_link link = bad_link(40000, 5000, 50000); /* later than the input delay, so that predictions are wrong */
    retick_peer_stats stats;
    retick_step *steps;
    uint8_t room[32];
    char address[64], message[1024];
    uint32_t i, accepted = 0, count;
    uint64_t first, other;
    retick_result result = RETICK_OK;
    OK(retick_set_log(on_log, &lines, RETICK_LOG_TRACE));
    for (i = 0; i < 2; i++) {
        peer *p = &peers[i];
        p->index = i;
        p->players = 2;
        p->changing = 3;
        p->is_host = p->wants_start = i == 0;
        OK(retick_mesh_config_init(&config, sizeof config));
        config.bind_address = "127.0.0.1";
        OK(retick_mesh_create(&config, &p->mesh));
        OK(retick_mesh_set_conditioner(p->mesh, &link, 7 + i));
        open_session(p, NULL);
    }
    OK(retick_mesh_local_address(peers[0].mesh, address, sizeof address, NULL));
    CHECK(strncmp(address, "127.0.0.1:", 10) == 0 && strcmp(address, "127.0.0.1:0") != 0);
    OK(retick_mesh_host(peers[0].mesh));
    while (retick_mesh_room(peers[0].mesh, room) != RETICK_OK) run_peer(&peers[0]);
    OK(retick_mesh_join(peers[1].mesh, address, room));
    while (peers[0].now.frame < 60 || peers[1].now.frame < 60) for (i = 0; i < 2; i++) run_peer(&peers[i]);
    stats.struct_size = sizeof stats;
    OK(retick_mesh_peer_stats(peers[0].mesh, 1, &stats));
    CHECK(stats.rtt_us > 40000 && stats.rtt_us < 400000); /* the conditioner is in the way */
    OK(retick_mesh_set_conditioner(peers[1].mesh, NULL, 0));

    memset(message, 7, sizeof message);
    while (accepted < 100000 && (result = retick_mesh_send(peers[0].mesh, 1, 3, RETICK_RELIABLE, message, sizeof message)) == RETICK_OK) accepted++;
    EXPECT(result, RETICK_ERR_WOULD_BLOCK);
    CHECK(accepted > 50);
    while (peers[1].messages < accepted) for (i = 0; i < 2; i++) run_peer(&peers[i]);
    EXPECT(peers[1].messages, accepted);
    OK(retick_mesh_send(peers[0].mesh, 1, 3, RETICK_RELIABLE, message, 1)); /* room again */

    OK(retick_session_confirmed_checksum(peers[0].session, 40, &first));
    OK(retick_session_confirmed_checksum(peers[1].session, 40, &other));
    EXPECT(other, first);
    CHECK(peers[0].loads > 0);

    /* The mesh goes, the session stays: it plays on, and says so when the network half has ended. */
    OK(retick_mesh_destroy(peers[1].mesh));
    EXPECT(retick_mesh_poll(peers[1].mesh), RETICK_ERR_INVALID_HANDLE);
    for (i = 0; i < 2000000; i++) {
        uint32_t due;
        OK(retick_session_frames_due(peers[1].session, &due, NULL));
        result = retick_session_begin_frame(peers[1].session, sizeof *steps, &steps, &count);
        if (result < 0) break;
        (void)retick_session_abort_frame(peers[1].session);
    }
    EXPECT(result, RETICK_ERR_SHUT_DOWN);
    OK(retick_session_destroy(peers[1].session));
    while (peers[0].events[RETICK_EVENT_LEFT] == 0) run_peer(&peers[0]);
    CHECK(lines_by_level[RETICK_LOG_INFO] >= 5); /* joined, connected, ready, begun, left */
    first = lines;
    OK(retick_set_log(on_log, &lines, RETICK_LOG_OFF));
    for (i = 0; i < 100; i++) run_peer(&peers[0]);
    EXPECT(lines, first);
    OK(retick_shutdown());
    EXPECT(lines, first);
    return 0;
}
