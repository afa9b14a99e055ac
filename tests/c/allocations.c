/* allocations.c - in a steady frame neither half allocates. The argument: how many peers. */
#include "common.h"

static uint64_t count, bytes_out;

static void *give(void *user, uint64_t size, uint64_t align) {
    void *memory = NULL;
    CHECK(user == &count && size > 0 && align > 0 && (align & (align - 1)) == 0);
    count++;
    bytes_out += size;
    if (align <= 16) return malloc((size_t)size);
    return posix_memalign(&memory, (size_t)align, (size_t)size) == 0 ? memory : NULL;
}

static void take(void *user, void *memory, uint64_t size, uint64_t align) {
    CHECK(user == &count && memory != NULL && size > 0 && align > 0);
    bytes_out -= size;
    free(memory);
}

int main(int arguments_count, char **arguments) {
    static world w;
    retick_link link;
    retick_simnet extra;
    uint32_t i, players = arguments_count > 1 ? (uint32_t)atoi(arguments[1]) : 4;
    uint64_t before, in_one, frame;
    EXPECT(retick_set_allocator(NULL, take, NULL), RETICK_ERR_INVALID_ARGUMENT);
    OK(retick_set_allocator(give, take, &count));
    EXPECT(retick_set_allocator(give, take, &count), RETICK_ERR_BUSY);
    link = bad_link(30000, 0, 0); /* within the window, no rollback while inputs stay */
    open_world(&w, players, 11, &link, FORM_LIST, NULL);
    /* Control: the hook counts, and counts what a network costs. */
    before = count;
    OK(retick_simnet_create(1, &extra));
    CHECK(count > before && bytes_out > 0);
    OK(retick_simnet_destroy(extra));
    for (i = 0; i < players; i++) w.peers[i].changing = 0;
    run_world(&w, 900);
    CHECK(compare_world(&w, 900) > 300);
    before = count;
    frame = w.peers[0].now.frame;
    for (i = 0; i < 600; i++) {
        in_one = count;
        run_world(&w, 1);
        if (count != in_one && getenv("SHOW")) printf("turn %u: %llu allocations\n", i, (unsigned long long)(count - in_one));
    }
    CHECK(w.peers[0].now.frame >= frame + 590);
    printf("%u peers, 600 frames: %llu allocations\n", players, (unsigned long long)(count - before));
    EXPECT(count - before, 0);
    /* With rollbacks too. */
    for (i = 0; i < players; i++) w.peers[i].changing = 3;
    run_world(&w, 300);
    before = count;
    run_world(&w, 600);
    printf("%u peers, 600 frames with rollbacks: %llu allocations\n", players, (unsigned long long)(count - before));
    EXPECT(count - before, 0);
    close_world(&w);
    OK(retick_shutdown());
    return 0;
}
