// Issuing work: the one way from an API call to the device, with the bound on what may be pending,
// stream capture, the counts, and word to the tool.
#pragma once

#include <cstdint>

#include "tests/virtual_gpu/model/machine.h"
#include "tests/virtual_gpu/vgpu.h"

namespace vgpu {

// Issues the operation, or adds it to the graph that the stream is being captured into. Waits while
// too much is pending in the stream. Returns the work with its times, which are 0 when it was
// captured.
Work IssueOrCapture(Stream& stream, const Operation& operation);

// Waits until one more operation may be pending in the stream. Called and returns with the lock
// held, which is free meanwhile. Returns the time.
int64_t WaitForRoom(const Stream& stream, std::unique_lock<std::mutex>& guard);

// Blocks until end_ns, and as long as the host needs to notice. Returns when the wait ended.
int64_t WaitForDevice(int64_t end_ns);

// Waits for a stream, an event or a context and tells the tool.
void SynchronizeStream(Stream& stream);
void SynchronizeContext(Context& context);
void SynchronizeEvent(Event& event);

void RecordEvent(Event& event, Stream& stream);
void StreamWaitsEvent(Stream& stream, Event& event);

// Whether all that was issued to it has ended.
bool IsIdle(const Stream& stream);

// How long a call takes the host at least: of the setting's range, 0 when nothing is to wait.
int64_t CallNs(Setting cost);

// Adds work to the process's counts; for graph launches, which issue their nodes themselves.
void Count(const Work& work);
void TellTool(const Work& work);

VgpuCounts Counts();

}  // namespace vgpu
