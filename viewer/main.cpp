// trainprof-viewer: what `trainprof view` starts. A window, or with --screenshot a picture.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/job/open.h"
#include "trace/base/exit_codes.h"
#include "trace/base/nearest.h"
#include "trace/base/parallel.h"
#include "trace/base/spare_blocks.h"
#include "trace/io/end_signals.h"
#include "trace/io/output_file.h"
#include "trace/io/print.h"
#include "viewer/app/app.h"
#include "viewer/navigation/ruler.h"
#include "viewer/platform/png_file.h"
#include "viewer/platform/screenshot.h"
#include "viewer/platform/settings_file.h"
#include "viewer/platform/window.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastSide = 64;
constexpr int kMostSide = 16'384;

constexpr char kExamples[] = R"(Examples:
  trainprof view trainprof-20261120T101500Z        a recording, also while it grows
  trainprof view worker0.pt.trace.json.gz          a trace of torch.profiler
  trainprof view traces/                           a folder of traces, one a rank
  trainprof view run/ --finding 2 --screenshot finding.png --size 1280x720
  trainprof view run/ --from 1.2s --to 1.35s --select 'name:nccl dur>1ms'
  trainprof view                                   the newest run in this folder; where there is none,
                                                   what is dropped on it, a recent one, a demo

TRAINPROF_OPENGL=surfaceless|device|window: how a picture gets its OpenGL (default: the first that works).
Exit codes: 0 done, 1 nothing to draw with (no display, no OpenGL), 2 usage, 4 the input cannot be read,
74 the picture cannot be written, 130 Ctrl-C.)";

struct Flags {
  std::string path;
  std::string screenshot;
  std::string size;
  std::string theme;
  float scale = 0;
  std::string from;
  std::string to;
  Goal goal;
};

int Fail(const std::string& message, int code) { return trainprof::Fail("view", message, code); }

struct Size {
  int width;
  int height;
};

// "1280x720"
std::optional<Size> ParseSize(const std::string& text) {
  Size size{};
  int read = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &size.width, &size.height, &read) != 2 ||
      static_cast<size_t>(read) != text.size()) {
    return std::nullopt;
  }
  const auto fits = [](int side) { return side >= kLeastSide && side <= kMostSide; };
  return fits(size.width) && fits(size.height) ? std::optional(size) : std::nullopt;
}

// The trace that comes with the program: beside it where it was built and where it is installed.
fs::path DemoTrace() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path demo = program.parent_path().parent_path() / "share" / "trainprof" / "demo";
  return fs::is_directory(demo, error) ? demo : fs::path();
}

void Override(Settings& settings, const Flags& flags) {
  if (flags.theme == "light") settings.theme = ThemeName::kLight;
  if (flags.theme == "dark") settings.theme = ThemeName::kDark;
  if (flags.scale > 0) settings.scale = flags.scale;
}

void Start(App& app, const Flags& flags) {
  app.state().demo = DemoTrace();
  if (flags.path.empty()) return;
  const fs::path path(flags.path);
  // "traces/", as a shell completes it, is the folder "traces".
  Open(app.state(), path.has_filename() || !path.has_relative_path() ? path : path.parent_path());
}

// TRAINPROF_OPENGL names the one way in which OpenGL is had, for a driver that fails in another.
bool ReadOpenGl(ScreenshotOptions& options) {
  const char* const name = std::getenv("TRAINPROF_OPENGL");
  if (name == nullptr || *name == 0) return true;
  options.opengl = OffscreenNamed(name);
  if (options.opengl) return true;
  Fail(fmt::format("TRAINPROF_OPENGL={}: it is one of {}", name, OffscreenNames()), kExitUsage);
  return false;
}

// Settings of earlier runs have no say in a picture: the same command gives the same one.
int Picture(const Flags& flags, const std::optional<Size>& size) {
  ScreenshotOptions options{.file = flags.screenshot};
  const auto writable = CheckOutputFile(flags.screenshot, OutputFile::Existing::kReplace);
  if (!writable.ok()) return Fail(writable.error(), kExitUnwritable);
  if (size) options.width = size->width, options.height = size->height;
  if (!ReadOpenGl(options)) return kExitUsage;
  Settings settings;
  Override(settings, flags);
  App app(settings, flags.goal);
  Start(app, flags);
  const auto drawn = DrawPicture(app, options);
  if (drawn.ok()) {
    const auto written = WritePng(options.file, options.width, options.height, drawn.value());
    return written.ok() ? kExitOk : Fail(written.error(), kExitUnwritable);
  }
  if (!app.goal_error().empty()) return Fail(drawn.error(), kExitUsage);
  const State& state = app.state();
  const bool unreadable = state.document && !state.document->progress().error.empty();
  return Fail(drawn.error(), unreadable ? kExitUnreadable : kExitNoDisplay);
}

int Show(const Flags& flags, const std::optional<Size>& size) {
  const fs::path settings_file = SettingsPath();
  Settings settings = LoadSettings(settings_file);
  Override(settings, flags);
  if (size) settings.window_width = size->width, settings.window_height = size->height;
  const WindowOptions options{.width = settings.window_width,
                              .height = settings.window_height,
                              .settings_file = settings_file};
  App app(std::move(settings), flags.goal);
  Start(app, flags);
  const auto shown = RunWindow(app, options);
  return shown.ok() ? kExitOk : Fail(shown.error(), kExitNoDisplay);
}

// Without a path: the newest run here, or a window that waits for a file.
void ChoosePath(Flags& flags) {
  const auto path = PathOrNewestRun(
      flags.path, [](const std::string& what) { Print(stderr, "trainprof view: {}\n", what); });
  if (path.ok()) flags.path = path.value();
}

// Why the flags that say what to show make no sense; empty when they do.
std::string ErrorInGoal(Flags& flags) {
  Goal& goal = flags.goal;
  if (goal.step && !(flags.from.empty() && flags.to.empty())) {
    return "--step and --from, --to both say which time to show: give one of them";
  }
  const std::pair<const char*, std::pair<const std::string*, std::optional<TraceTime>*>> times[] = {
      {"--from", {&flags.from, &goal.from}}, {"--to", {&flags.to, &goal.to}}};
  for (const auto& [flag, time] : times) {
    const auto& [text, at] = time;
    if (text->empty()) continue;
    *at = ParseTimeText(*text);
    if (!*at) return fmt::format("{} {}: write a time with its unit: 1.5s, 820ms", flag, *text);
  }
  if (goal.from && goal.to && *goal.to <= *goal.from) {
    return fmt::format("--from {} is not before --to {}", flags.from, flags.to);
  }
  for (const std::string& what : goal.select) {
    if (const std::string error = ErrorInSelection(what); !error.empty()) {
      return fmt::format("--select {}: {}", what, error);
    }
  }
  return {};
}

int Run(Flags& flags) {
  if (const std::string error = ErrorInGoal(flags); !error.empty()) return Fail(error, kExitUsage);
  ChoosePath(flags);
  std::optional<Size> size;
  if (!flags.size.empty()) {
    size = ParseSize(flags.size);
    if (!size) {
      return Fail(fmt::format("--size {}: write WIDTHxHEIGHT in pixels, {} to {} each", flags.size,
                              kLeastSide, kMostSide),
                  kExitUsage);
    }
  }
  EndOnSignals("trainprof view: cancelled\n");
  if (!flags.path.empty()) {
    if (const auto source = OpenJob(flags.path); !source.ok()) {
      return Fail(source.error(), kExitUnreadable);
    }
  }
  if (!flags.goal.IsEmpty() && flags.path.empty()) {
    return Fail("--step, --finding, --rank, --from, --to and --select need a PATH", kExitUsage);
  }
  return flags.screenshot.empty() ? Show(flags, size) : Picture(flags, size);
}

void AddFlags(CLI::App& parser, Flags& flags) {
  parser.add_option("PATH", flags.path, "Recording, trace, or folder of traces");
  parser.add_option("--step", flags.goal.step, "Show this step, as the report counts them")
      ->type_name("N");
  parser
      .add_option("--finding", flags.goal.finding, "Open this finding, as the report counts them")
      ->type_name("K");
  parser.add_option("--rank", flags.goal.rank, "Its findings, steps and tables, not the slowest's")
      ->type_name("R");
  parser
      .add_option("--from", flags.from,
                  "Show the time from here on, as the ruler counts it: 1.5s, 820ms")
      ->type_name("TIME");
  parser.add_option("--to", flags.to, "Up to here")->type_name("TIME");
  parser
      .add_option(
          "--select", flags.goal.select,
          "Select the first event that a search finds ('name:gemm dur>1ms rank:0 at:1.5s'), "
          "or a range of time (12ms..15ms); may be given for both")
      ->allow_extra_args(false)
      ->type_name("WHAT");
  parser
      .add_option("--screenshot", flags.screenshot,
                  "Write a picture and end; needs no display. Settings have no say in it")
      ->type_name("FILE.png");
  parser.add_option("--size", flags.size, "Of window or picture, in pixels (picture: 1600x900)")
      ->type_name("WxH");
  parser.add_option("--theme", flags.theme, "light or dark")
      ->check(CLI::IsMember({"light", "dark"}))
      ->type_name("THEME");
  parser.add_option("--scale", flags.scale, "Size of text and lines (default: the display's; 1)")
      ->check(CLI::Range(0.5, 4.0))
      ->type_name("S");
}

std::string Explain(const CLI::App& parser, const CLI::ParseError& error) {
  for (const std::string& word : parser.remaining()) {
    if (word.size() < 2 || word[0] != '-') continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : parser.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back(name);
    }
    return NoSuchOption(word.substr(0, word.find('=')), known);
  }
  return error.what();
}

int Main(int argc, char** argv) {
  CLI::App parser("show a recording or a trace as a timeline", "trainprof view");
  parser.footer(kExamples);
  Flags flags;
  AddFlags(parser, flags);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    PrintText(stdout, parser.help() + "\n");
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    Print(stderr, "trainprof view: {}\nFlags and examples: trainprof help view\n",
          Explain(parser, error));
    return kExitUsage;
  }
  return Run(flags);
}

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) {
  trainprof::ShareOneHeap();
  trainprof::KeepSpareBlocks();
  try {
    return trainprof::Main(argc, argv);
  } catch (const std::exception& error) {
    trainprof::Print(stderr, "trainprof view: internal error: {}\n", error.what());
  } catch (...) {
    trainprof::Print(stderr, "trainprof view: internal error of unknown kind\n");
  }
  return trainprof::kExitInternal;
}
