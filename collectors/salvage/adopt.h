// Lets the supervisor write on in the segment of a process that is dead, with the writers that the
// process itself would have used. In a process of its own: it takes the place of that one's state.
#pragma once

namespace trainprof::collectors {

// Maps run.ctl of the run directory, and the segment, which must be open for writing: no path is
// looked up. False when either is not what it should be.
bool AdoptSegment(int run_directory, int segment);

// Unmaps the segment: a file that is mapped for writing is taken for a living process's.
void ReleaseSegment();

}  // namespace trainprof::collectors
