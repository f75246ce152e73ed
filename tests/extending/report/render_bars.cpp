// An example: a renderer that draws. A page with the findings and a bar for each device operation.
#include <fmt/format.h>

#include "profiler/report/renderer.h"

namespace trainprof::renderers {
namespace {

constexpr double kWidth = 1000;  // pixels, of a rank's whole time
constexpr int kBar = 20;

// Names come from traces: they must not become markup.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&' || c == '"') {
      escaped += fmt::format("&#{};", static_cast<int>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Timeline(const Trace& trace) {
  const DeviceOpTable& ops = trace.device_ops;
  const double px_per_ns =
      kWidth / static_cast<double>(std::max<int64_t>(trace.extent.Length().ns, 1));
  std::string out =
      fmt::format("<h2>rank {}</h2>\n<svg width=\"{}\" height=\"{}\">\n", trace.rank, kWidth, kBar);
  for (size_t row = 0; row < ops.size(); ++row) {
    out +=
        fmt::format("<rect x=\"{:.2f}\" width=\"{:.2f}\" height=\"{}\"><title>{}</title></rect>\n",
                    static_cast<double>((ops.begin[row] - trace.extent.begin).ns) * px_per_ns,
                    static_cast<double>((ops.end(row) - ops.begin[row]).ns) * px_per_ns, kBar,
                    Escaped(trace.Text(ops.name[row])));
  }
  return out + "</svg>\n";
}

Result<std::string> Render(const JobAnalysis& job, const RenderOptions& options) {
  std::string page = "<!doctype html><meta charset=\"utf-8\">\n";
  for (const RankAnalysis& rank : job.ranks) {
    for (const Finding& finding : rank.findings) {
      page += fmt::format("<p>{}: {}</p>\n", finding.code, Escaped(finding.title));
    }
  }
  if (!options.visit_traces) return page + "<p>no timeline: this input cannot be read twice</p>\n";
  const Result<void> drawn = options.visit_traces([&](Trace trace) -> Result<void> {
    page += Timeline(trace);
    return {};
  });
  if (!drawn.ok()) return Error{drawn.error()};
  return page;
}

}  // namespace

extern const Renderer bars = {"a page with a timeline, an example", Render};

}  // namespace trainprof::renderers
