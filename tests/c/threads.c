/* threads.c - E12: two threads hammer one session, one mesh and one network. Every call is OK or BUSY, or says what else. */
#include "common.h"
#include <pthread.h>
#include <stdatomic.h>

static retick_session session;
static retick_mesh mesh;
static retick_simnet net;
static atomic_int stop;

static atomic_ulong busy;

static void allowed(retick_result result) {
    if (result == RETICK_ERR_BUSY) atomic_fetch_add(&busy, 1);
    if (result == RETICK_ERR_BUSY || result == RETICK_ERR_INVALID_STATE || result >= 0) return;
    fail(__FILE__, __LINE__, "OK, BUSY or INVALID_STATE", result);
}

static int32_t save(void *user, retick_step *step) {
    (void)user;
    memset(step->state, 7, 64);
    step->saved_size = 64;
    return 0;
}
static int32_t nothing(void *user, retick_step *step) { (void)user; (void)step; return 0; }

static void *hammer(void *argument) {
    atomic_ulong *done = argument;
    retick_callbacks callbacks;
    retick_event event;
    retick_stats stats;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.save = save;
    callbacks.load = callbacks.advance = nothing;
    event.struct_size = sizeof event;
    stats.struct_size = sizeof stats;
    while (!stop) {
        uint32_t frames;
        uint64_t us;
        allowed(retick_session_add_local_input(session, 0, "x", 1));
        allowed(retick_session_frames_due(session, &frames, NULL));
        allowed(retick_session_advance(session, &callbacks));
        allowed(retick_session_stats(session, &stats));
        allowed(retick_session_next_event(session, &event));
        allowed(retick_mesh_poll(mesh));
        allowed(retick_mesh_host(mesh));
        allowed(retick_mesh_time_us(mesh, &us));
        allowed(retick_simnet_advance(net, 100));
        atomic_fetch_add(done, 1);
    }
    return NULL;
}

/* Two threads create and destroy at once, and a third shuts down: no crash, and every code is known. */
static void *churn(void *argument) {
    atomic_ulong *done = argument;
    const retick_mesh none = { 0 };
    retick_session_config config;
    while (!stop) {
        retick_session mine;
        uint32_t frames;
        OK(retick_session_config_init(&config, sizeof config));
        OK(retick_session_create(&config, none, &mine));
        if (retick_session_frames_due(mine, &frames, NULL) != RETICK_OK) { /* shut down in between */ }
        (void)retick_session_destroy(mine);
        atomic_fetch_add(done, 1);
    }
    return NULL;
}

static void run(void *(*body)(void *), int shutdowns) {
    pthread_t threads[2];
    static atomic_ulong done[2];
    int i;
    atomic_store(&stop, 0);
    for (i = 0; i < 2; i++) atomic_store(&done[i], 0);
    for (i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, body, &done[i]) == 0);
    while (done[0] < 3000 || done[1] < 3000 || (body == hammer && busy == 0 && done[0] < 1000000)) {
        if (shutdowns-- > 0) OK(retick_shutdown());
    }
    atomic_store(&stop, 1);
    for (i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    retick_mesh_config config;
    retick_session_config session_config;
    const retick_mesh none = { 0 };
    OK(retick_simnet_create(5, &net));
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = RETICK_IO_SIMNET;
    config.simnet = net;
    OK(retick_mesh_create(&config, &mesh));
    OK(retick_session_config_init(&session_config, sizeof session_config));
    OK(retick_session_create(&session_config, none, &session));
    run(hammer, 0);
    CHECK(busy > 0);
    OK(retick_session_destroy(session));
    OK(retick_mesh_destroy(mesh));
    OK(retick_simnet_destroy(net));
    run(churn, 200);
    OK(retick_shutdown());
    return 0;
}
