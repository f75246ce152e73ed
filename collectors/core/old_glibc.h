// Binds functions that glibc 2.34 moved into libc.so to the version that they have had since their
// beginning, so that the library loads on older systems as well. Include it where they are called.
#pragma once

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// Sanitizers put functions of their own in the place of these.
#elif defined(__x86_64__)
#define TRAINPROF_OLD_GLIBC "GLIBC_2.2.5"
#define TRAINPROF_OLD_DLINFO "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define TRAINPROF_OLD_GLIBC "GLIBC_2.17"
#define TRAINPROF_OLD_DLINFO "GLIBC_2.17"
#endif

#if defined(TRAINPROF_OLD_GLIBC)
__asm__(".symver dlopen, dlopen@" TRAINPROF_OLD_GLIBC);
__asm__(".symver dlclose, dlclose@" TRAINPROF_OLD_GLIBC);
__asm__(".symver dlsym, dlsym@" TRAINPROF_OLD_GLIBC);
__asm__(".symver dladdr, dladdr@" TRAINPROF_OLD_GLIBC);
__asm__(".symver dlerror, dlerror@" TRAINPROF_OLD_GLIBC);
__asm__(".symver dlinfo, dlinfo@" TRAINPROF_OLD_DLINFO);
__asm__(".symver pthread_create, pthread_create@" TRAINPROF_OLD_GLIBC);
#endif
