#include "trace/recording/read/memory_value.h"

#include "trace/base/names.h"
#include "trace/recording/wire/format.h"

namespace trainprof::recording {

bool AddMemoryValue(const Event& mark, TraceBuilder& builder) {
  if (builder.trace().Text(mark.category) != kMemoryDomain) return false;
  const auto bytes = builder.trace().args.Find(mark.args, builder.Intern("payload"));
  if (!bytes) return true;
  constexpr double kMib = 1 << 20;
  const Arg value{mark.name, {.type = ArgValue::Type::kDouble, .real = bytes->Number() / kMib}};
  Event counted = mark;
  counted.name = builder.Intern(kMemoryCounter);
  counted.args = builder.AddArgs({&value, 1});
  builder.AddCounter(counted);
  return true;
}

}  // namespace trainprof::recording
