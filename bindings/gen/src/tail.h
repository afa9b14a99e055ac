#ifdef __cplusplus
}
#endif

/* Layout, checked where the header is compiled. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#  define RETICK_ASSERT_LAYOUT(what) static_assert(what, #what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#  define RETICK_ASSERT_LAYOUT(what) _Static_assert(what, #what)
#else
#  define RETICK_ASSERT_LAYOUT(what) struct retick_layout_check
#endif
@ASSERTS@
#undef RETICK_ASSERT_LAYOUT

#endif /* RETICK_H */
