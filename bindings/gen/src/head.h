/* retick.h - deterministic multiplayer for any game engine: rollback netcode over a serverless UDP mesh.
 *
 * Generated from src/ffi by `cargo run -p retick-gen -- --bless`; do not edit. MIT OR Apache-2.0
 *
 * The contract, for every function:
 *
 *  - Results are int32_t: 0 is ok, above 0 is ok with information, below 0 is an error. retick_last_error has the
 *    sentence for a person: which argument, what is wrong, what to do. Nothing is printed, nothing aborts.
 *  - Handles are numbers by value; { 0 } is null. A null, destroyed, random or foreign handle is
 *    RETICK_ERR_INVALID_HANDLE. Destroying null is ok.
 *  - Any thread may call. One handle is used by one thread at a time; a second one gets RETICK_ERR_BUSY.
 *  - The game's functions run only inside a call that the game made, on its thread; never on a thread of the library.
 *    The allocator of retick_set_allocator is the one exception.
 *  - Structs with struct_size: call retick_..._init, or set it to sizeof before each call where the field says so.
 *    Programs built with an older or newer header work: the library reads and writes as many bytes as both know.
 *  - Texts are UTF-8 and NUL-terminated. Texts and structs that go in are copied. A pointer that comes out says until
 *    when it lives. There is nothing to free, ever.
 *  - Pointers must be null or valid for the bytes that the function names; null where it is not allowed is
 *    RETICK_ERR_INVALID_ARGUMENT.
 *  - Units are in the names: _us are microseconds, _ms milliseconds, _ppm millionths. Frames are int32_t from 0.
 *
 * The smallest use: retick_mesh_create, _host or _join; retick_session_create; retick_mesh_set_ready, _start; then once a
 * picture: retick_mesh_poll and its events, and retick_session_advance as often as retick_session_frames_due says.
 */
#ifndef RETICK_H
#define RETICK_H

#include <stdint.h>

#if !defined(RETICK_API)
#  if defined(RETICK_STATIC)
#    define RETICK_API
#  elif defined(_WIN32)
#    define RETICK_API __declspec(dllimport)
#  elif defined(__GNUC__)
#    define RETICK_API __attribute__((visibility("default")))
#  else
#    define RETICK_API
#  endif
#endif

#ifdef __cplusplus
extern "C" {
#endif
