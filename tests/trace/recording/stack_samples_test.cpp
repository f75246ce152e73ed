// Stack samples of a run's file on the timelines of its ranks.
#include <gtest/gtest.h>
#include <string.h>

#include <random>
#include <set>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "trace/recording/files/stack_encoder.h"
#include "trace/recording/read/host_counters.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::testing {
namespace {

using namespace recording;
namespace fs = std::filesystem;

constexpr int64_t kStartNs = 1'000'000'000'000;
constexpr int64_t kPeriod = 20'000'000;

// A file of a launcher (10) with two ranks (20, 21), of which 21 has a worker (30).
class Samples {
 public:
  Samples() {
    HostHeader header{};
    header.magic = kHostMagic;
    header.version = kHostVersion;
    header.rank = -1;
    header.pid = 77;
    strcpy(header.boot_id, "boot");
    header.check = CheckOf(&header, offsetof(HostHeader, check));
    bytes_.assign(reinterpret_cast<const char*>(&header),
                  reinterpret_cast<const char*>(&header) + sizeof header);
    const HostEntity processes[] = {{HostEntityKind::kProcess, 10, 1, 1, "torchrun"},
                                    {HostEntityKind::kProcess, 20, 10, 2, "python"},
                                    {HostEntityKind::kProcess, 21, 10, 3, "python"},
                                    {HostEntityKind::kProcess, 30, 21, 4, "pt_data_worker"}};
    for (const HostEntity& process : processes) {
      const uint32_t number = encoder.AddProcess(process);
      threads.push_back(encoder.AddThread(number, process.number, process.text));
    }
  }
  void Flush() {
    for (const char byte : encoder.TakeFrame()) bytes_.push_back(byte);
  }
  fs::path WriteTo(const ScratchFolder& folder) {
    Flush();
    WriteBytes(folder / "stacks-77-1.tph", bytes_);
    return folder / "stacks-77-1.tph";
  }
  StackEncoder encoder;
  std::vector<uint32_t> threads;

 private:
  std::vector<char> bytes_;
};

Samples SmallStackFile() {
  Samples file;
  const uint32_t main = file.encoder.AddFrame("main", "/home/me/train.py", 40);
  const uint32_t wait = file.encoder.AddFrame("_wait", "/usr/lib/python3.11/queue.py", 7);
  const uint32_t item = file.encoder.AddFrame("Data.__getitem__", "/home/me/train.py", 12);
  for (int i = 0; i < 100; ++i) {
    const int64_t now = kStartNs + i * kPeriod;
    for (size_t t = 0; t < file.threads.size(); ++t) {
      const uint32_t stacks[][2] = {{wait, main}, {item, main}};
      const bool works = t == 3 || i % 4 == 0;
      file.encoder.Sample(now + static_cast<int64_t>(t), file.threads[t],
                          works ? ThreadStateCode::kRunning : ThreadStateCode::kWaiting, kPeriod,
                          stacks[works ? 1 : 0]);
    }
    if (i % 5 == 4) file.Flush();
  }
  file.encoder.Sample(kStartNs + 100 * kPeriod, file.threads[1], ThreadStateCode::kUnknown, 5, {});
  file.encoder.Fact(fact::kStackSampler, "cheap");
  return file;
}

const std::vector<HostAudience> kTwoRanks = {
    {"boot", 1, {{21, 3}}}, {"boot", 0, {{20, 2}}}, {"other", 2, {{20, 2}}}};

Trace ReadStacks(const ScratchFolder& folder, size_t audience,
                 const std::vector<HostAudience>& audiences = kTwoRanks) {
  TraceBuilder builder;
  HostSamples(folder.path(), audiences).AddTo(audience, kStartNs, builder);
  return std::move(builder).Build();
}

// "pid ms state weight name: file:line function < ...", a line a sample; '*' marks the user's frames.
std::vector<std::string> SampleRows(const Trace& trace) {
  static const char* const kStates[] = {"unknown", "running", "waiting"};
  std::vector<std::string> rows;
  for (size_t i = 0; i < trace.samples.size(); ++i) {
    const auto& samples = trace.samples;
    const Track& track = trace.tracks[Index(samples.track[i])];
    std::string row = std::to_string(trace.processes[Index(track.process)].pid) + " " +
                      std::to_string(samples.begin[i].ns / 1'000'000) + " " +
                      kStates[static_cast<size_t>(samples.state[i])] + " " +
                      std::to_string(samples.weight_ns[i]) + " " +
                      std::string(trace.Text(samples.name[i])) + ":";
    trace.stacks.ForEachFrame(samples.stack[i], [&](const CallFrame& frame) {
      row += " " + std::string(trace.Text(frame.file)) + ":" + std::to_string(frame.line) +
             (frame.is_user ? "*" : "");
      return true;
    });
    EXPECT_EQ(samples.begin[i], samples.end(i));
    rows.push_back(row);
  }
  return rows;
}

TEST(StackSamples, GoToTheRankOfTheirProcessAndItsAncestors) {
  const ScratchFolder folder;
  SmallStackFile().WriteTo(folder);
  const auto pids = [&](size_t audience) {
    std::map<std::string, int> counts;
    for (const std::string& row : SampleRows(ReadStacks(folder, audience)))
      ++counts[row.substr(0, 2)];
    return counts;
  };
  EXPECT_EQ(pids(0), (std::map<std::string, int>{{"21", 100}, {"30", 100}}));
  EXPECT_EQ(pids(1), (std::map<std::string, int>{{"10", 100}, {"20", 101}}));
  EXPECT_TRUE(pids(2).empty());
}

TEST(StackSamples, SayWhereWhatAndForHowLong) {
  const ScratchFolder folder;
  SmallStackFile().WriteTo(folder);
  const Trace trace = ReadStacks(folder, 1);
  const std::vector<std::string> rows = SampleRows(trace);
  const auto first = std::find_if(rows.begin(), rows.end(),
                                  [](const std::string& row) { return row.starts_with("20 "); });
  ASSERT_NE(first, rows.end());
  EXPECT_EQ(first[0],
            "20 0 running 20000000 Data.__getitem__: /home/me/train.py:12* /home/me/train.py:40*");
  EXPECT_EQ(first[1],
            "20 20 waiting 20000000 _wait: /usr/lib/python3.11/queue.py:7 "
            "/home/me/train.py:40*");
  EXPECT_EQ(first[100], "20 2000 unknown 5 (not in Python):");
  const Trace worker = ReadStacks(folder, 0);
  const ProcessId process = worker.ProcessOf(worker.samples.track.back());
  EXPECT_EQ(worker.Text(worker.processes[Index(process)].name), "pt_data_worker");
  const auto said = [](const Trace& of) {
    return std::count(of.environment.begin(), of.environment.end(),
                      std::pair<std::string, std::string>(fact::kStackSampler, "cheap"));
  };
  EXPECT_EQ(said(trace), 1);  // the machine's lowest rank
  EXPECT_EQ(said(worker), 0);
}

TEST(StackSamples, SealedReadAsRawDid) {
  const ScratchFolder folder;
  const fs::path path = SmallStackFile().WriteTo(folder);
  const std::vector<std::string> raw = SampleRows(ReadStacks(folder, 0));
  ASSERT_TRUE(SealHostFile(path).ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(SampleRows(ReadStacks(folder, 0)), raw);
  EXPECT_TRUE(HostFilesIn(folder.path()).empty());  // they are no host samples
}

TEST(StackSamples, DamageIsCounted) {
  const ScratchFolder folder;
  const fs::path path = SmallStackFile().WriteTo(folder);
  std::vector<char> bytes = ReadBytes(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(path, bytes);
  const Trace trace = ReadStacks(folder, 1);
  EXPECT_EQ(trace.quality.CountOf("damaged_stack_samples"), 1);
  EXPECT_LT(trace.samples.size(), 201u);
  EXPECT_GT(trace.samples.size(), 50u);
}

// Whatever the bytes: no crash, no hang, no more samples than were written, and none that was not.
TEST(StackSamples, DamagedFilesAreSurvived) {
  const ScratchFolder folder;
  const fs::path raw = SmallStackFile().WriteTo(folder);
  const std::vector<std::string> rows = SampleRows(ReadStacks(folder, 1));
  const std::set<std::string> good(rows.begin(), rows.end());
  const std::vector<char> raw_bytes = ReadBytes(raw);
  ASSERT_TRUE(SealHostFile(raw).ok());
  const fs::path sealed = HostFilesIn(folder.path(), kStacksPrefix)[0];
  const std::vector<char> sealed_bytes = ReadBytes(sealed);
  std::mt19937_64 random(1);
  for (int i = 0; i < Rounds(400); ++i) {
    const bool is_raw = i % 2 == 0;
    std::vector<char> bytes = is_raw ? raw_bytes : sealed_bytes;
    testing::Damage(bytes, random);
    fs::remove(raw);
    fs::remove(sealed);
    WriteBytes(is_raw ? raw : sealed, bytes);
    for (const std::string& row : SampleRows(ReadStacks(folder, 1)))
      ASSERT_TRUE(good.contains(row)) << row;
  }
}

// Chains that build on each other: what is read is what a sample needs, once.
TEST(StackSamples, StacksThatNoSampleHasCostNothing) {
  Samples file;
  std::vector<uint32_t> chain;
  for (int i = 0; i < 20'000; ++i) {
    chain.push_back(file.encoder.AddFrame("f" + std::to_string(i), "x.py", i));
  }
  file.encoder.Sample(kStartNs, file.threads[2], ThreadStateCode::kRunning, 1, chain);
  file.encoder.Sample(kStartNs + 1, file.threads[1], ThreadStateCode::kRunning, 1,
                      std::span(chain).last(3));
  const ScratchFolder folder;
  file.WriteTo(folder);
  EXPECT_EQ(ReadStacks(folder, 1).stacks.size(), 3u);
  EXPECT_EQ(ReadStacks(folder, 0).stacks.size(), 20'000u);
}

}  // namespace
}  // namespace trainprof::testing
