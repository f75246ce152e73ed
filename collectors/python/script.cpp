#include "collectors/python/script.h"

namespace trainprof::collectors {

uint32_t ScriptOf(const OwnStack& stack, ThreadWriter& writer) {
  if (stack.count == 0) return 0;
  const uint32_t known = writer.FindScript(stack.hash);
  if (known != 0) return known;
  char text[recording::kMaxStringBytes];
  const uint32_t bytes = SpellStack(stack, text, sizeof text);
  return bytes == 0 ? 0 : writer.AddScript(stack.hash, MakeText(text, bytes, false));
}

}  // namespace trainprof::collectors
