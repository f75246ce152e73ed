#include "analysis/job/files_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <thread>

namespace trainprof {
namespace {

using Needs = std::vector<uint64_t>;

Trace TraceOf(size_t file) {
  Trace trace;
  trace.path = std::to_string(file);
  return trace;
}

TEST(FilesAhead, GivesAllInTheirOrder) {
  constexpr size_t kFiles = 50;
  std::atomic<size_t> reading = 0;
  std::atomic<size_t> most = 0;
  FilesAhead ahead(Needs(kFiles, 1), [&](size_t file) -> Result<Trace> {
    most = std::max<size_t>(most, ++reading);
    // Those that come first take longest.
    std::this_thread::sleep_for(std::chrono::microseconds(50 * ((kFiles - file) % 7)));
    --reading;
    if (file % 10 == 3) return Error{"no trace: " + std::to_string(file)};
    return TraceOf(file);
  });
  for (size_t file = 0; file < kFiles; ++file) {
    const Result<Trace> next = ahead.Next();
    ASSERT_EQ(next.ok(), file % 10 != 3);
    EXPECT_EQ(next.ok() ? next.value().path : next.error().substr(10), std::to_string(file));
  }
  EXPECT_LE(most, UsableCores());
}

// Two cores, 64 files: who took none read one itself, and the other core had nothing to do until that was done.
TEST(FilesAhead, NoCoreWaitsForAFileThatTakesLong) {
  const size_t cores = UsableCores();
  if (cores == 1) GTEST_SKIP() << "one core: nothing is read ahead";
  std::atomic<bool> others_are_read = false;
  bool waited_in_vain = false;
  FilesAhead ahead(Needs(cores + 1, 1), [&](size_t file) -> Result<Trace> {
    if (file == cores) others_are_read = true;
    const auto begin = std::chrono::steady_clock::now();
    while (file == 0 && !others_are_read && !waited_in_vain) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      waited_in_vain = std::chrono::steady_clock::now() - begin > std::chrono::seconds(30);
    }
    return TraceOf(file);
  });
  EXPECT_EQ(ahead.Next().value().path, "0");
  EXPECT_FALSE(waited_in_vain);
}

TEST(FilesAhead, WhatTheMachineHasNoMemoryForIsReadWhenItIsTaken) {
  std::atomic<int> reading = 0;
  FilesAhead ahead(Needs(8, UINT64_MAX / 16), [&](size_t file) -> Result<Trace> {
    EXPECT_EQ(++reading, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --reading;
    return TraceOf(file);
  });
  for (size_t file = 0; file < 8; ++file)
    EXPECT_EQ(ahead.Next().value().path, std::to_string(file));
}

// Each of them finds memory only where no other one is read, or waits.
TEST(FilesAhead, ThatFindsNoMemoryBesideOthersIsReadByItself) {
  std::atomic<int> reading = 0;
  std::atomic<int> failed = 0;
  FilesAhead ahead(Needs(12, 1), [&](size_t file) -> Result<Trace> {
    struct Count {
      explicit Count(std::atomic<int>& count) : count(count) { ++count; }
      ~Count() { --count; }
      std::atomic<int>& count;
    } count(reading);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (file == 5 && failed++ < 1) throw std::bad_alloc();
    return TraceOf(file);
  });
  for (size_t file = 0; file < 12; ++file) {
    EXPECT_EQ(ahead.Next().value().path, std::to_string(file));
    if (file >= 5) {
      EXPECT_EQ(reading, 0) << "nothing is read ahead any more";
    }
  }
  EXPECT_EQ(failed, 2) << "once in vain, once alone";
}

TEST(FilesAhead, AFileThatFindsNoneAloneHasNone) {
  FilesAhead ahead(Needs(3, 1), [](size_t file) -> Result<Trace> {
    if (file == 1) throw std::bad_alloc();
    return TraceOf(file);
  });
  EXPECT_TRUE(ahead.Next().ok());
  EXPECT_THROW((void)ahead.Next(), std::bad_alloc);
  EXPECT_TRUE(ahead.Next().ok());
}

// Who takes no more waits for none of those that are being read.
TEST(FilesAhead, EndsSoonWhenNobodyTakesTheRest) {
  std::atomic<int> ended_early = 0;
  const auto begin = std::chrono::steady_clock::now();
  {
    FilesAhead ahead(Needs(4, 1), [&](size_t file) -> Result<Trace> {
      if (file == 0) return TraceOf(file);
      try {
        for (int i = 0; i < 60'000; ++i) {
          CancelPoint();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      } catch (const Cancelled&) {
        ++ended_early;
        throw;
      }
      return TraceOf(file);
    });
    EXPECT_TRUE(ahead.Next().ok());
    // Till one is on its way, where a thread could be started.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  if (UsableCores() > 1) {
    EXPECT_GE(ended_early, 1);
  }
}

TEST(FilesAhead, WhatCancelsTheOneWhoTakesCancelsTheReading) {
  std::atomic<bool> cancel = false;
  std::set<std::string> taken;
  const bool whole = RunUnlessCancelled(&cancel, [&] {
    FilesAhead ahead(Needs(6, 1), [&](size_t file) -> Result<Trace> {
      for (int i = 0; file >= 3 && i < 60'000; ++i) {
        cancel = true;
        CancelPoint();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return TraceOf(file);
    });
    for (int i = 0; i < 6; ++i) taken.insert(ahead.Next().value().path);
  });
  EXPECT_FALSE(whole);
  EXPECT_LE(taken.size(), 3u);
}

}  // namespace
}  // namespace trainprof
