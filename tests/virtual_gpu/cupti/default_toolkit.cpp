// The one difference between libcupti.so.13 and libcupti.so.12 (see CMakeLists.txt).
#include "tests/virtual_gpu/cupti/records.h"

namespace vgpu {

const uint32_t kDefaultToolkit = VGPU_DEFAULT_TOOLKIT;

}  // namespace vgpu
