// Large blocks that were freed, kept for who asks next. The kernel clears each page that it gives: of a table that is
// filled once that takes as long as filling it, and the stages of an import and of an analysis free as much as they ask
// for.
#pragma once

#include <cstddef>

namespace trainprof {

// From now on, for operator new and delete of this program; in builds with a sanitizer nothing changes. What is kept
// never makes a program larger than its blocks in use were at their most, and 64 MiB: who asks for what is not there has
// as much of it given back first.
void KeepSpareBlocks();

// Gives all of them back.
void ReturnSpareBlocks();

// Bytes that are kept.
size_t SpareBytes();

}  // namespace trainprof
