// Texts that several cores make and one after the other takes: a long file is made in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace trainprof {

// Makes the text of a piece, in place of what the string holds.
using MakeText = std::function<void(size_t piece, std::string& text)>;

// Makes the texts of the pieces [0, count), each once, on up to `threads` threads, this one among them, and gives them
// to `take` in their order, one at a time, on any of the threads. Each thread has a maker of its own. What `take`
// leaves in the string is used again for the room that it has. A few texts a thread are there at once. An exception
// ends the work and is thrown again here, as RunAll (parallel.h) does; what cancels this thread cancels the others.
void MakeTextsInOrder(size_t count, size_t threads, const std::function<MakeText()>& maker,
                      const std::function<void(std::string& text)>& take);

}  // namespace trainprof
