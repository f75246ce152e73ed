#include "trace/base/texts_in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Makes texts of very different lengths and times.
MakeText Numbers() {
  return [](size_t piece, std::string& text) {
    std::mt19937 random(static_cast<unsigned>(piece));
    if (random() % 16 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    }
    text.assign(random() % 100, '.');
    text += std::to_string(piece) + '\n';
  };
}

TEST(TextsInOrder, AreTakenAsIfOneThreadHadMadeThem) {
  for (const size_t count : {0, 1, 2, 7, 1000}) {
    std::string expected;
    for (size_t piece = 0; piece < count; ++piece) {
      std::string text;
      Numbers()(piece, text);
      expected += text;
    }
    for (const size_t threads : {0, 1, 2, 5}) {
      std::string all;
      MakeTextsInOrder(count, threads, Numbers, [&](std::string& text) { all += text; });
      EXPECT_EQ(all, expected) << count << " pieces, " << threads << " threads";
    }
  }
}

TEST(TextsInOrder, OneIsTakenAtATimeAndFewAreThere) {
  std::atomic<int> taking = 0;
  std::atomic<size_t> made = 0;
  size_t taken = 0;
  size_t most_ahead = 0;
  const auto maker = [&]() -> MakeText {
    return [&](size_t, std::string& text) {
      text = "x";
      ++made;
    };
  };
  MakeTextsInOrder(500, 3, maker, [&](std::string&) {
    EXPECT_EQ(++taking, 1);
    if (taken % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    most_ahead = std::max(most_ahead, made - taken);
    ++taken;
    --taking;
  });
  EXPECT_EQ(taken, 500u);
  EXPECT_LE(most_ahead, 3u * 4 + 1);
}

TEST(TextsInOrder, EachThreadHasAMakerOfItsOwn) {
  std::atomic<int> makers = 0;
  const auto maker = [&]() -> MakeText {
    return [number = ++makers, thread = std::thread::id()](size_t, std::string& text) mutable {
      if (thread == std::thread::id()) thread = std::this_thread::get_id();
      EXPECT_EQ(thread, std::this_thread::get_id());
      text = std::to_string(number);
    };
  };
  size_t taken = 0;
  MakeTextsInOrder(200, 2, maker, [&](std::string&) { ++taken; });
  EXPECT_EQ(taken, 200u);
  EXPECT_LE(makers, 2);
}

TEST(TextsInOrder, AFailureOfEitherSideEndsTheWork) {
  for (const size_t bad : {0, 1, 250, 499}) {
    const auto maker = [bad]() -> MakeText {
      return [bad](size_t piece, std::string&) {
        if (piece == bad) throw std::runtime_error("no room");
      };
    };
    size_t taken = 0;
    EXPECT_THROW(MakeTextsInOrder(500, 2, maker, [&](std::string&) { ++taken; }),
                 std::runtime_error);
    EXPECT_LE(taken, bad);
    taken = 0;
    EXPECT_THROW(MakeTextsInOrder(500, 2, Numbers,
                                  [&](std::string&) {
                                    if (taken++ == bad) throw std::runtime_error("disk full");
                                  }),
                 std::runtime_error);
    EXPECT_EQ(taken, bad + 1);
  }
}

TEST(TextsInOrder, AreCancelledOnAllThreads) {
  std::atomic<bool> cancel = false;
  const auto maker = [&]() -> MakeText {
    return [&](size_t piece, std::string&) {
      if (piece == 100) cancel = true;
      CancelPoint();
    };
  };
  size_t taken = 0;
  EXPECT_FALSE(RunUnlessCancelled(
      &cancel, [&] { MakeTextsInOrder(100'000, 2, maker, [&](std::string&) { ++taken; }); }));
  EXPECT_LE(taken, 101u);
}

}  // namespace
}  // namespace trainprof
