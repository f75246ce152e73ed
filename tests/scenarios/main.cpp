// scenarios NAME --habit on|off|<name> --seed N: runs a scenario and prints the truth about it, one line of JSON.
// scenarios --list: all of them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "tests/scenarios/scenario.h"

int main(int argc, char** argv) {
  using scenarios::AllScenarios;
  using scenarios::Scenario;
  scenarios::Options options;
  bool list = false;
  CLI::App app("Training loops with known habits on the virtual GPU; costs are drawn from a seed.");
  app.add_option("scenario", options.scenario, "which one");
  app.add_option("--habit", options.habits, "habits that are on: their names, or \"on\", \"off\"")
      ->delimiter(',');
  app.add_option("--seed", options.seed, "of the costs");
  app.add_option("--steps", options.steps, "instead of the scenario's own number");
  app.add_flag("--quiet", options.quiet, "run before all other programs, where that is allowed");
  app.add_flag("--plain", options.plain, "no \"epoch\" range, no logging thread");
  app.add_flag("--list", list, "print names and what they do");
  CLI11_PARSE(app, argc, argv);

  std::vector<Scenario>& all = AllScenarios();
  std::sort(all.begin(), all.end(),
            [](const Scenario& a, const Scenario& b) { return a.name < b.name; });
  if (list) {
    for (const Scenario& s : all) std::printf("%s\t%s\n", s.name.c_str(), s.what.c_str());
    return 0;
  }
  const auto chosen = std::find_if(all.begin(), all.end(),
                                   [&](const Scenario& s) { return s.name == options.scenario; });
  if (chosen == all.end()) {
    std::fprintf(stderr, "scenarios: no scenario \"%s\"; --list names them\n",
                 options.scenario.c_str());
    return 2;
  }
  scenarios::Run run(options);
  chosen->run(run);
  std::printf("%s\n", run.Truth().c_str());
}
