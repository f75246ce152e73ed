// One event of the calling thread.
#pragma once

#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

// Calls `record` with the thread's writer, where this process records and the writer can be had.
template <class Record>
void WithWriter(Record record) {
  if (g_runtime.state.get() == nullptr) return;
  ThreadWriter* writer = ThreadWriter::Enter();
  if (writer == nullptr) return;
  record(*writer);
  writer->Leave();
}

// The same of a thread that has recorded before; others are left as they are.
template <class Record>
void WithOldWriter(Record record) {
  if (g_runtime.state.get() == nullptr) return;
  ThreadWriter* writer = ThreadWriter::EnterAgain();
  if (writer == nullptr) return;
  record(*writer);
  writer->Leave();
}

}  // namespace trainprof::collectors
