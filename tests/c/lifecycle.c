/* lifecycle.c - create and destroy, 200 times, with real sockets: no thread and no file stays behind. */
#include "common.h"
#include <dirent.h>

static int count_in(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    CHECK(dir != NULL);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

static void once(uint32_t io_mode, int shuts_down) {
    retick_mesh_config config;
    retick_session_config session_config;
    retick_mesh mesh;
    retick_session session;
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = io_mode;
    config.bind_address = "127.0.0.1";
    OK(retick_mesh_create(&config, &mesh));
    OK(retick_session_config_init(&session_config, sizeof session_config));
    OK(retick_session_create(&session_config, mesh, &session));
    OK(retick_mesh_host(mesh));
    if (io_mode == RETICK_IO_MANUAL) OK(retick_io_turn(mesh, 100));
    OK(retick_mesh_poll(mesh));
    if (!shuts_down) {
        OK(retick_session_destroy(session));
        OK(retick_mesh_destroy(mesh));
    } else {
        OK(retick_shutdown());
        EXPECT(retick_mesh_poll(mesh), RETICK_ERR_INVALID_HANDLE);
    }
}

int main(void) {
    int threads, files, i;
    once(RETICK_IO_THREAD, 1);
    once(RETICK_IO_MANUAL, 1);
    threads = count_in("/proc/self/task");
    files = count_in("/proc/self/fd");
    for (i = 0; i < 200; i++) once(i % 4 ? RETICK_IO_THREAD : RETICK_IO_MANUAL, i % 10 == 0);
    OK(retick_shutdown());
    EXPECT(count_in("/proc/self/task"), threads);
    EXPECT(count_in("/proc/self/fd"), files);
    return 0;
}
