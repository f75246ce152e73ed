// The list of renderers, generated from render_*.cpp.
#include "profiler/report/for_people.h"
#include "profiler/report/renderer.h"
#include "trace/io/printable.h"

#define TRAINPROF_ENTRY(symbol, slug) \
  namespace trainprof::renderers {    \
  extern const Renderer symbol;       \
  }
#include "renderers.inc"
#undef TRAINPROF_ENTRY

namespace trainprof {

std::span<const RegisteredRenderer> AllRenderers() {
  static const RegisteredRenderer kRenderers[] = {
#define TRAINPROF_ENTRY(symbol, slug) {slug, &renderers::symbol},
#include "renderers.inc"
#undef TRAINPROF_ENTRY
  };
  return kRenderers;
}

const Renderer* FindRenderer(std::string_view slug) {
  for (const RegisteredRenderer& entry : AllRenderers()) {
    if (entry.slug == slug) return entry.renderer;
  }
  return nullptr;
}

Result<std::string> RenderJob(const Renderer& renderer, const JobAnalysis& job,
                              const RenderOptions& options) {
  if (!renderer.for_people) return renderer.render(job, options);
  Result<std::string> text = renderer.render(ForPeople(job), options);
  if (!text.ok()) return text;
  return SeveralLines(text.value(), options.color);
}

}  // namespace trainprof
