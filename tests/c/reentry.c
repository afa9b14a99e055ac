/* reentry.c - calls from inside the game's own functions: those that make no sense there are BUSY, and nothing breaks. */
#include "common.h"

static retick_session session;
static retick_mesh mesh;
static uint32_t saves, advances, predictions, lines;

static int32_t on_save(void *user, retick_step *step) {
    retick_stats stats;
    retick_start_info info;
    retick_step *steps;
    retick_callbacks callbacks;
    uint32_t count;
    uint64_t checksum;
    (void)user;
    saves++;
    stats.struct_size = sizeof stats;
    info.struct_size = sizeof info;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.advance = callbacks.save = callbacks.load = on_save;
    EXPECT(retick_session_destroy(session), RETICK_ERR_BUSY);
    EXPECT(retick_session_advance(session, &callbacks), RETICK_ERR_BUSY);
    EXPECT(retick_session_begin_frame(session, sizeof *steps, &steps, &count), RETICK_ERR_BUSY);
    EXPECT(retick_session_end_frame(session), RETICK_ERR_BUSY);
    EXPECT(retick_session_abort_frame(session), RETICK_ERR_BUSY);
    EXPECT(retick_session_run_step(session, 0), RETICK_ERR_BUSY);
    EXPECT(retick_session_add_local_input(session, 0, "x", 1), RETICK_ERR_BUSY);
    EXPECT(retick_session_frames_due(session, &count, NULL), RETICK_ERR_BUSY);
    EXPECT(retick_session_set_input_delay(session, 0, 3), RETICK_ERR_BUSY);
    EXPECT(retick_session_confirmed_checksum(session, 0, &checksum), RETICK_ERR_BUSY);
    EXPECT(retick_shutdown(), RETICK_ERR_BUSY);
    OK(retick_session_stats(session, &stats));
    OK(retick_session_start_info(session, &info));
    OK(retick_session_state_slots(session, &count));
    CHECK(retick_mesh_poll(mesh) == RETICK_OK); /* another handle is another matter */
    /* More room, from inside: the record has the new place. */
    if (step->state_size < 100000 + 1000 * saves) {
        uint32_t i;
        retick_result result = RETICK_ERR_INVALID_ARGUMENT;
        for (i = 0; i < 64 && result != RETICK_OK; i++) result = retick_session_grow_state(session, i, 100000 + 1000 * saves);
        OK(result);
    }
    if (step->state_size >= 100000) memset(step->state, 1, (size_t)step->state_size);
    step->saved_size = step->state_size;
    return 0;
}

static int32_t on_load(void *user, retick_step *step) {
    (void)user;
    CHECK(step->state != NULL);
    return 0;
}

static int32_t on_advance(void *user, retick_step *step) {
    (void)user;
    CHECK(step->kind == RETICK_STEP_ADVANCE);
    EXPECT(retick_session_destroy(session), RETICK_ERR_BUSY);
    advances++;
    return 0;
}

static void on_predict(void *user, uint32_t slot, int32_t frame, const uint8_t *last, uint32_t last_size, uint8_t *out,
                       uint32_t capacity, uint32_t *out_size) {
    uint32_t count;
    peer *p = (peer *)user;
    (void)slot; (void)frame; (void)last; (void)last_size; (void)out; (void)capacity;
    *out_size = 0;
    predictions++;
    EXPECT(retick_session_frames_due(p->session, &count, NULL), RETICK_ERR_BUSY);
    EXPECT(retick_session_destroy(p->session), RETICK_ERR_BUSY);
    EXPECT(retick_shutdown(), RETICK_ERR_BUSY);
}

static void configure(retick_session_config *config, peer *p) {
    config->predictor = RETICK_PREDICT_GAME;
    config->predict = on_predict;
    config->predict_user = p;
}

static void on_log(void *user, uint32_t level, const char *target, const char *message) {
    uint64_t us;
    CHECK(user == &lines && level >= 1 && level <= 5 && strncmp(target, "retick", 6) == 0 && message[0] != 0);
    EXPECT(retick_set_log(NULL, NULL, 0), RETICK_ERR_BUSY);
    EXPECT(retick_shutdown(), RETICK_ERR_BUSY);
    if (mesh.id) OK(retick_mesh_time_us(mesh, &us));
    lines++;
}

int main(void) {
    retick_callbacks callbacks;
    retick_session_config config;
    retick_mesh_config mesh_config;
    const retick_mesh none = { 0 };
    static world w;
    uint32_t i;
    EXPECT(retick_set_log(on_log, &lines, 6), RETICK_ERR_INVALID_ARGUMENT);
    OK(retick_set_log(on_log, &lines, RETICK_LOG_TRACE));
    OK(retick_mesh_config_init(&mesh_config, sizeof mesh_config));
    mesh_config.io_mode = RETICK_IO_CUSTOM;
    mesh_config.local_address = (const uint8_t *)"me";
    mesh_config.local_address_size = 2;
    OK(retick_mesh_create(&mesh_config, &mesh));
    OK(retick_session_config_init(&config, sizeof config));
    OK(retick_session_create(&config, none, &session));
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.save = on_save;
    callbacks.load = on_load;
    callbacks.advance = on_advance;
    for (i = 0; i < 20; i++) OK(retick_session_advance(session, &callbacks));
    CHECK(saves > 0 && advances == 20);
    OK(retick_session_destroy(session));
    open_world(&w, 2, 1, NULL, FORM_CALLBACKS, configure);
    run_world(&w, 100);
    CHECK(predictions > 0);
    close_world(&w);
    OK(retick_mesh_destroy(mesh));
    mesh.id = 0;
    OK(retick_shutdown());
    return 0;
}
