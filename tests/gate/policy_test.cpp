// .trainprof.toml: what it may say, and that nothing else passes for it.
#include "profiler/gate/policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace trainprof {
namespace {

std::string ErrorOf(std::string_view text) {
  const Result<Policy> policy = ParsePolicy(text, "p.toml");
  return policy.ok() ? "" : policy.error();
}

TEST(Policy, TheContractsExampleIsUnderstood) {
  const Result<Policy> read = ParsePolicy(R"(
schema = 1
[check]
fail-on = "warning"
warmup-steps = 7
[rules.TP101]
severity = "error"
threshold = 0.20
[rules.host-sync]
severity = "off"
[budgets.step_time_ms]
stat = "p90"
max = 210
max-regression = "3%"
[budgets.input_wait]
max = "5%"
[budgets.idle_sync_drain]
max = 2.5
[budgets.gpu_busy]
min = "80%"
[budgets.peak_gpu_memory]
max = "10 GiB"
[budgets.samples_per_second]
min = 400
samples-per-step = 64
[[suppress]]
rule = "TP301"
match = "aten::item"
reason = "logging"
expires = 2026-12-31
[[suppress]]
rule = "input-bound"
reason = "known"
expires = "2027-01-02"
)",
                                          "p.toml");
  ASSERT_TRUE(read.ok()) << read.error();
  const Policy& policy = read.value();
  EXPECT_EQ(policy.fail_on, FailOn::kWarning);
  EXPECT_EQ(policy.warmup_steps, 7);
  ASSERT_NE(policy.Of("input-bound"), nullptr);
  EXPECT_EQ(policy.Of("input-bound")->severity, Severity::kError);
  EXPECT_EQ(policy.Of("input-bound")->threshold, 0.20);
  EXPECT_TRUE(policy.Of("host-sync")->is_off);
  const Budget* const step = policy.BudgetOf("step_time_ms");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->stat, "p90");
  EXPECT_EQ(step->max, 210);
  EXPECT_EQ(step->max_regression, 0.03);
  EXPECT_EQ(policy.BudgetOf("input_wait")->max_share, 0.05);
  EXPECT_EQ(policy.BudgetOf("idle_sync_drain")->max, 2.5);
  EXPECT_EQ(policy.BudgetOf("gpu_busy")->min, 0.8);
  EXPECT_EQ(policy.BudgetOf("peak_gpu_memory")->max, 10 * 0x1p30);
  EXPECT_EQ(policy.BudgetOf("samples_per_second")->samples_per_step, 64);
  ASSERT_EQ(policy.suppressions.size(), 2u);
  EXPECT_EQ(policy.suppressions[0].rule, "host-sync");
  EXPECT_EQ(policy.suppressions[0].where, "p.toml:26");
  EXPECT_EQ(TextOf(*policy.suppressions[0].expires), "2026-12-31");
  EXPECT_EQ(TextOf(*policy.suppressions[1].expires), "2027-01-02");
}

TEST(Policy, AnEmptyOneIsThatOfNoFile) {
  const Result<Policy> policy = ParsePolicy("", "p.toml");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().fail_on, FailOn::kError);
  EXPECT_TRUE(policy.value().budgets.empty());
}

// What is misspelt must not pass for a gate that holds.
TEST(Policy, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(ErrorOf("[check]\nfail-onn = \"error\"\n"),
            "p.toml:2: 'fail-onn' is no key of [check], did you mean 'fail-on'?; there are: "
            "fail-on, warmup-steps");
  EXPECT_EQ(ErrorOf("schema = 2\n"), "p.toml:1: this trainprof knows schema = 1 alone");
  EXPECT_EQ(ErrorOf("[check]\nfail-on = \"errors\"\n"),
            "p.toml:2: fail-on = \"errors\": it has to be one of \"error\", \"warning\", \"note\", "
            "\"never\"");
  EXPECT_NE(ErrorOf("[rules.TP999]\n").find("p.toml:1: there is no rule 'TP999'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[rules.TP101]\nthreshold = 20\n").find("has to be a share"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[rules.TP101]\n[rules.input-bound]\n").find("has a table already"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.step_time]\nmax = 1\n").find("did you mean 'step_time_ms'?"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.step_time_ms]\nmin = 1\n").find("'min' is no key"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.step_time_ms]\nstat = \"p50\"\n").find("sets no limit"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.step_time_ms]\nmax = -1\n").find("at least 0"), std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.step_time_ms]\nmax = nan\n").find("at least 0"), std::string::npos);
  EXPECT_NE(ErrorOf("[budgets.peak_gpu_memory]\nmax = \"10 GB\"\n").find("10 GiB"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[[suppress]]\nrule = \"TP301\"\n").find("needs a reason"), std::string::npos);
  EXPECT_NE(ErrorOf("[[suppress]]\nreason = \"x\"\n").find("needs a rule"), std::string::npos);
  EXPECT_NE(
      ErrorOf("[[suppress]]\nrule = \"TP301\"\nreason = \"x\"\nexpires = \"soon\"\n").find("a day"),
      std::string::npos);
  EXPECT_NE(ErrorOf("[suppress]\nrule = \"TP301\"\n").find("[[suppress]]"), std::string::npos);
  EXPECT_NE(ErrorOf("a = [\n").find("p.toml:"), std::string::npos);
  EXPECT_NE(ErrorOf("[check]\nwarmup-steps = -1\n").find("number of steps"), std::string::npos);
}

// No beginning of a policy crashes the reader, and none but whole ones is taken.
TEST(Policy, AnyBeginningIsReadOrRefused) {
  const std::string text =
      "schema = 1\n[budgets.step_time_ms]\nmax = 210\n[[suppress]]\nrule = "
      "\"TP301\"\nreason = \"r\"\nexpires = 2026-12-31\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    const Result<Policy> policy = ParsePolicy(std::string_view(text).substr(0, size), "p.toml");
    if (policy.ok()) continue;
    EXPECT_EQ(policy.error().rfind("p.toml:", 0), 0u) << policy.error();
  }
}

TEST(Policy, ThatOfAFolderAboveIsFoundUpToTheRepository) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  const fs::path root = fs::path(::testing::TempDir()) / "policy_test";
  fs::remove_all(root);
  fs::create_directories(root / "repo" / ".git");
  fs::create_directories(root / "repo" / "a" / "b");
  std::ofstream(root / ".trainprof.toml") << "[check]\nfail-on = \"never\"\n";
  fs::current_path(root / "repo" / "a" / "b");
  EXPECT_EQ(FindPolicy("").value().path, "");  // above the repository it is somebody else's
  std::ofstream(root / "repo" / ".trainprof.toml") << "[check]\nfail-on = \"note\"\n";
  EXPECT_EQ(FindPolicy("").value().fail_on, FailOn::kNote);
  EXPECT_EQ(FindPolicy("").value().path, "../../.trainprof.toml");
  EXPECT_EQ(FindPolicy(root / ".trainprof.toml").value().fail_on, FailOn::kNever);
  EXPECT_NE(FindPolicy("nowhere.toml").error().find("no such file"), std::string::npos);
  EXPECT_NE(FindPolicy(root).error().find("no file"), std::string::npos);
  fs::current_path(before);
  fs::remove_all(root);
}

TEST(Policy, TheCommandLineAddsToTheFileAndReplacesWhatItSays) {
  const Result<Policy> read = ParsePolicy(
      "[check]\nfail-on = \"note\"\n[budgets.step_time_ms]\nmax = 210\nmax-regression = \"3%\"\n",
      "p.toml",
      {"never",
       {"step_time_ms=5.5", "step_time_ms.stat=p95", "gpu_busy=80%", "peak_gpu_memory=10 GiB",
        "samples_per_second=7", "samples_per_second.samples-per-step=2", "idle=5%"}});
  ASSERT_TRUE(read.ok()) << read.error();
  const Policy& policy = read.value();
  EXPECT_EQ(policy.fail_on, FailOn::kNever);
  EXPECT_EQ(policy.budgets.size(), 5u);
  const Budget& step = *policy.BudgetOf("step_time_ms");
  EXPECT_EQ(step.max, 5.5);
  EXPECT_EQ(step.stat, "p95");
  EXPECT_EQ(step.max_regression, 0.03);
  EXPECT_EQ(step.line, 3);
  EXPECT_EQ(policy.BudgetOf("idle")->line, 0);
  EXPECT_EQ(policy.BudgetOf("gpu_busy")->min, 0.8);
  EXPECT_EQ(policy.BudgetOf("peak_gpu_memory")->max, 10 * 0x1p30);
  EXPECT_EQ(policy.BudgetOf("samples_per_second")->min, 7);
  EXPECT_EQ(policy.BudgetOf("samples_per_second")->samples_per_step, 2);
  EXPECT_EQ(policy.BudgetOf("idle")->max_share, 0.05);
}

TEST(Policy, AMistakeOnTheCommandLineNamesTheFlag) {
  const auto error_of = [](const PolicyChanges& changes, std::string_view text = "") {
    const Result<Policy> policy = ParsePolicy(text, "p.toml", changes);
    return policy.ok() ? "" : policy.error();
  };
  const std::pair<const char*, const char*> kMistakes[] = {
      {"step_time=3", "did you mean 'step_time_ms'"},
      {"step_time_ms", "NAME=LIMIT"},
      {"=3", "NAME=LIMIT"},
      {"step_time_ms=", "NAME=LIMIT"},
      {"step_time_ms=fast", "a number"},
      {"step_time_ms.min=3", "'min' is no key"},
      {"step_time_ms.stat=p95", "sets no limit"},
      {"step_time_ms=-3", "at least 0"},
      {"step_time_ms=nan", "at least 0"},
      {"gpu_busy=180%", "a share"}};
  for (const auto& [budget, said] : kMistakes) {
    const std::string error = error_of({"", {budget}});
    EXPECT_EQ(error.rfind(std::string("--budget ") + budget + ":", 0), 0u) << error;
    EXPECT_NE(error.find(said), std::string::npos) << error;
  }
  EXPECT_EQ(error_of({"nevr", {}}).rfind("--fail-on nevr:", 0), 0u);
  // The file's own mistakes are its own.
  EXPECT_EQ(error_of({"", {"idle=3"}}, "budgets = 3\n").rfind("p.toml:1:", 0), 0u);
  EXPECT_EQ(error_of({"", {"idle=3"}}, "[budgets]\nidle = 3\n").rfind("p.toml:2:", 0), 0u);
}

}  // namespace
}  // namespace trainprof
