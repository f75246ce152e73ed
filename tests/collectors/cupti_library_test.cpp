// What is known of libcupti without calling it: versions that fit, names of results.
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include "collectors/cupti/library_answer.h"
#include "collectors/cupti/result_names.h"
#include "collectors/cupti/versions.h"

namespace trainprof::collectors {
namespace {

TEST(CuptiLibrary, SonamesTellTheMajorVersion) {
  EXPECT_EQ(MajorOf("libcupti.so.13"), 13);
  EXPECT_EQ(MajorOf("libcupti.so.12"), 12);
  EXPECT_EQ(MajorOf("libcupti.so.11.8"), 11);
  EXPECT_EQ(MajorOf("libcupti.so.2025.1.0"), 0) << "NVIDIA's own numbers: no version of CUDA";
  EXPECT_EQ(MajorOf("libcupti.so"), 0);
  EXPECT_EQ(MajorOf(""), 0);
}

TEST(CuptiLibrary, TheSonameCorrectsTheNumber) {
  EXPECT_EQ(CudaVersionOf(18, 11), 11080);
  EXPECT_EQ(CudaVersionOf(18, 12), 12000) << "libcupti 12.1.105";
  EXPECT_EQ(CudaVersionOf(22, 12), 12040);
  EXPECT_EQ(CudaVersionOf(130001, 13), 13000);
  EXPECT_EQ(CudaVersionOf(22, 0), 12040) << "no SONAME";
}

TEST(CuptiLibrary, ADriverServesItsMajorVersionAndThoseBefore) {
  EXPECT_TRUE(FitsDriver(13, 13000));
  EXPECT_TRUE(FitsDriver(12, 12080));
  EXPECT_TRUE(FitsDriver(12, 13030));
  EXPECT_TRUE(FitsDriver(11, 13000));
  EXPECT_FALSE(FitsDriver(13, 12090));
  EXPECT_FALSE(FitsDriver(12, 11080));
  EXPECT_TRUE(FitsDriver(0, 12080)) << "unknown: to be asked";
  EXPECT_TRUE(FitsDriver(13, 0)) << "unknown: to be asked";
}

TEST(CuptiLibrary, ResultsAreNamedAsTheHeadersNameThem) {
#define VGPU_NAME(number, name) EXPECT_STREQ(KnownResultName(number), #name);
#include "vgpu_result_names.inc"
#undef VGPU_NAME
  EXPECT_STREQ(KnownResultName(-1), "an unknown error");
  EXPECT_STREQ(KnownResultName(500), "an unknown error");
}

TEST(CuptiLibrary, WhatCannotBeTriedSaysWhy) {
  LibraryAnswer answer{};
  answer.start_error = -EMFILE;
  char text[512];
  DescribeAnswer("/lib/libcupti.so.13", answer, "", text, sizeof text);
  EXPECT_STREQ(text,
               "libcupti at /lib/libcupti.so.13: not loaded, as no process could be started to try "
               "it: EMFILE (too many open files)");
  answer.start_error = -EAGAIN;
  DescribeAnswer("/lib/libcupti.so.13", answer, "", text, sizeof text);
  EXPECT_NE(strstr(text, "EAGAIN (no more processes or threads may be started)"), nullptr) << text;
  char tiny[16];
  DescribeAnswer("/lib/libcupti.so.13", answer, nullptr, tiny, sizeof tiny);
  EXPECT_STREQ(tiny, "libcupti at /li");
}

}  // namespace
}  // namespace trainprof::collectors
