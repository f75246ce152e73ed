// Lets the supervisor's sampler read this process's memory, for the stacks of Python threads, where the
// system refuses that to other processes (Yama). No thread, no service: a descriptor of /proc/self/mem,
// which every process may open of itself, is sent to it once.
#pragma once

namespace trainprof::collectors {

// Sends it to the socket that TRAINPROF_MEMORY names, where it is our own user's; once in each
// process, and again in a forked child at its first event. Does nothing without the variable, which
// is there only if the supervisor found itself refused. Never waits.
void GiveOwnMemory();

// In a process that has just begun to record: whether its parent gave its own.
void GiveOwnMemoryAgain();

}  // namespace trainprof::collectors
