// What the unwinder that is linked in (libgcc_eh) takes from glibc, under versions that old systems
// have as well: it was built against the glibc of this machine.
#include <pthread.h>

#include "collectors/core/old_glibc.h"

#if defined(TRAINPROF_OLD_GLIBC)
extern "C" {
int OldOnce(pthread_once_t* once, void (*function)());
int OldKeyCreate(pthread_key_t* key, void (*destructor)(void*));
__asm__(".symver OldOnce, pthread_once@" TRAINPROF_OLD_GLIBC);
__asm__(".symver OldKeyCreate, pthread_key_create@" TRAINPROF_OLD_GLIBC);

[[gnu::visibility("hidden")]] int OurOnce(pthread_once_t* once,
                                          void (*function)()) __asm__("pthread_once");
[[gnu::visibility("hidden")]] int OurKeyCreate(
    pthread_key_t* key, void (*destructor)(void*)) __asm__("__pthread_key_create");

int OurOnce(pthread_once_t* once, void (*function)()) { return OldOnce(once, function); }
int OurKeyCreate(pthread_key_t* key, void (*destructor)(void*)) {
  return OldKeyCreate(key, destructor);
}
}
#endif
