// What the inspector, the selection and the findings keep between frames.
#pragma once

namespace trainprof {

struct InspectorCache {};

}  // namespace trainprof
