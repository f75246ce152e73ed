// A job as people read it.
#pragma once

#include "analysis/job/job.h"

namespace trainprof {

// The job with every text of it made one line that no terminal obeys (trace/io/printable.h): a
// kernel's name cannot pretend to be a line of the report. A finding's fix keeps its lines.
JobAnalysis ForPeople(JobAnalysis job);

}  // namespace trainprof
