// What programs and their hooks register and keep handles to: domains and strings. Never freed, never
// changed once published, so that handles stay good in forked children and after Destroy calls.
// Lock-free: a fork at any moment leaves it whole.
#pragma once

#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

// A range's name and the text of its stack (nullptr: none), for who writes the same ones at each step.
struct Place {
  const Text* name;
  const Text* stack;
};
// A new one each time. nullptr when memory runs out.
const Place* RegisterPlace(const Text& name, const Text& stack);

// The domain of NVTX calls that name none.
const Domain* DefaultDomain();
// The same name gives the same domain. Beyond kMaxDomains all share the last number (counted).
// Falls back to the default domain when memory runs out.
const Domain* RegisterDomain(const Text& name);
// The same text gives the same string. nullptr when memory runs out.
const Text* RegisterString(const Text& text);

}  // namespace trainprof::collectors
