// CUPTI has one client: where another tool in this process is about to use it, as torch.profiler does,
// ours lets go of it before, and takes it back afterwards.
#pragma once

namespace trainprof::collectors {

// Of the tool's thread: it may use CUPTI when this returns, at the latest after five seconds, or no
// longer uses it. Says nothing where it was said already. True when something changed.
bool LendCupti(bool lent);

// Of the thread that calls CUPTI: whether it is to be lent, and that it is, or no longer.
bool CuptiIsWanted();
void AnswerLending(bool lent);
void StopAnswering();

}  // namespace trainprof::collectors
