// The one writer: regular files appear whole or not at all, anything else is written into.
#include "trace/io/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using Existing = OutputFile::Existing;

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class OutputFileTest : public ::testing::Test {
 protected:
  std::string At(const char* name) const { return (folder_ / name).string(); }
  void Put(const char* name, const std::string& text) const { std::ofstream(At(name)) << text; }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  testing::ScratchFolder folder_;
};

unsigned ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// In a process of its own: limits and credentials are its alone. What `work` returns.
int InChild(const std::function<int()>& work) {
  std::fflush(stdout);  // else the child's writers flush what the tests before it have printed
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(OutputFileTest, AppearsOnlyWhenItIsWhole) {
  auto file = OutputFile::Open(At("a"), Existing::kReplace);
  ASSERT_TRUE(file.ok());
  file.value()->Write("half");
  EXPECT_FALSE(fs::exists(At("a")));
  file.value()->Write(" and half");
  ASSERT_TRUE(file.value()->Commit().ok());
  EXPECT_EQ(TextOf(At("a")), "half and half");
  EXPECT_EQ(Names(), std::set<std::string>{"a"});
}

TEST_F(OutputFileTest, LeavesNothingWhenNotCommitted) {
  Put("a", "before");
  { (void)OutputFile::Open(At("a"), Existing::kReplace).value()->Write("half"); }
  EXPECT_EQ(TextOf(At("a")), "before");
  EXPECT_EQ(Names(), std::set<std::string>{"a"});
}

TEST_F(OutputFileTest, ANewFileHasTheModeOfTheUmaskAReplacedOneItsOwn) {
  const mode_t before = umask(027);
  Put("old", "");
  ASSERT_EQ(chmod(At("old").c_str(), 0600), 0);
  const bool written = WriteOutputFile(At("new"), "").ok() && WriteOutputFile(At("old"), "").ok();
  umask(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(ModeOf(At("new")), 0640u);
  EXPECT_EQ(ModeOf(At("old")), 0600u);
}

TEST_F(OutputFileTest, ALinkStaysAndItsTargetIsWritten) {
  fs::create_directory(At("far"));
  Put("far/real", "before");
  fs::create_symlink("far/real", At("near"));
  fs::create_symlink("near", At("nearer"));
  fs::create_symlink("far/to come", At("dangling"));
  ASSERT_TRUE(WriteOutputFile(At("nearer"), "after").ok());
  ASSERT_TRUE(WriteOutputFile(At("dangling"), "came").ok());
  EXPECT_TRUE(fs::is_symlink(At("near")));
  EXPECT_TRUE(fs::is_symlink(At("nearer")));
  EXPECT_TRUE(fs::is_symlink(At("dangling")));
  EXPECT_EQ(TextOf(At("far/real")), "after");
  EXPECT_EQ(TextOf(At("far/to come")), "came");
  EXPECT_FALSE(WriteOutputFile(At("nearer"), "again", Existing::kRefuse).ok());
}

TEST_F(OutputFileTest, AnotherUsersLinkIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: a link of another user";
  Put("real", "before");
  fs::create_symlink("real", At("trap"));
  if (lchown(At("trap").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root: lchown failed";
  const auto written = WriteOutputFile(At("trap"), "after");
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().find("another user (id 12345)"), std::string::npos) << written.error();
  EXPECT_EQ(TextOf(At("real")), "before");
}

TEST_F(OutputFileTest, AFifoIsWrittenIntoAndStays) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = TextOf(At("fifo")); });
  const auto written = WriteOutputFile(At("fifo"), "through", Existing::kRefuse);
  reader.join();
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(At("fifo")));
  EXPECT_EQ(Names(), std::set<std::string>{"fifo"});
}

TEST_F(OutputFileTest, ADeviceIsWrittenIntoAlsoBehindALink) {
  fs::create_symlink("/dev/null", At("null"));
  fs::create_symlink("/dev/full", At("full"));
  EXPECT_TRUE(WriteOutputFile(At("null"), "gone").ok());
  const auto full = WriteOutputFile(At("full"), "text");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error(), At("full") +
                              ": writing failed after 0 bytes: No space left on device; free some "
                              "space or choose another folder");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(OutputFileTest, AnOpenDescriptorIsSharedNotReplaced) {
  const std::string out = At("out");
  EXPECT_EQ(InChild([&] {
              const int fd = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
              dup2(fd, STDOUT_FILENO);
              (void)!write(STDOUT_FILENO, "first ", 6);
              const bool done = WriteOutputFile("/dev/stdout", "second ").ok() &&
                                WriteOutputFile("/proc/self/fd/1", "third").ok();
              (void)!write(STDOUT_FILENO, "\n", 1);
              return done ? 0 : 1;
            }),
            0);
  EXPECT_EQ(TextOf(out), "first second third\n");
}

TEST_F(OutputFileTest, ErrorsNameWhatTheUserWroteAndWhatIsWrong) {
  Put("file", "");
  fs::create_directory(At("folder"));
  fs::create_symlink("loop", At("loop"));
  const std::pair<std::string, std::string> expected[] = {
      {At("no/such/a"), "the folder " + At("no/such") + " does not exist; create it first"},
      {At("file/a"), "is no folder"},
      {At("folder"), "it is a folder; name a file in it"},
      {At("folder/"), "it is a folder; name a file in it"},
      {At("loop"), "too many links"},
      {"", "no file name"},
      {"/dev/fd/4711", "Bad file descriptor"},
      {At(std::string(300, 'n').c_str()), "File name too long"},
  };
  for (const auto& [path, what] : expected) {
    const auto written = WriteOutputFile(path, "x");
    ASSERT_FALSE(written.ok()) << path;
    EXPECT_NE(written.error().find(what), std::string::npos) << written.error();
    EXPECT_EQ(written.error().find(".part"), std::string::npos) << written.error();
  }
  EXPECT_EQ(Names(), (std::set<std::string>{"file", "folder", "loop"}));
}

TEST_F(OutputFileTest, NoPermissionIsAnErrorForFolderAndFile) {
  if (geteuid() == 0) {
    // Permissions bind only another user.
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  }
  Put("protected", "before");
  ASSERT_EQ(chmod(At("protected").c_str(), 0444), 0);
  fs::create_directory(At("folder"));
  ASSERT_EQ(chmod(At("folder").c_str(), 0555), 0);
  const int failed = InChild([&] {
    if (geteuid() == 0 && setresuid(12345, 12345, 12345) != 0) return 99;
    const auto file = WriteOutputFile(At("protected"), "after");
    const auto in_folder = WriteOutputFile(At("folder/a"), "after");
    return (file.ok() ? 1 : 0) + (in_folder.ok() ? 2 : 0) +
           (in_folder.ok() || in_folder.error().find("Permission denied") != std::string::npos ? 0
                                                                                               : 4);
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(TextOf(At("protected")), "before");
}

TEST_F(OutputFileTest, RefusesWhatExistsAlsoWhenItComesUpWhileWriting) {
  auto file = OutputFile::Open(At("a"), Existing::kRefuse);
  ASSERT_TRUE(file.ok());
  file.value()->Write("late");
  Put("a", "early");
  const auto done = file.value()->Commit();
  file.value().reset();
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().find("it came up while writing"), std::string::npos);
  EXPECT_FALSE(OutputFile::Open(At("a"), Existing::kRefuse).ok());
  EXPECT_EQ(TextOf(At("a")), "early");
  EXPECT_EQ(Names(), std::set<std::string>{"a"});
}

TEST_F(OutputFileTest, WhatBecameAFifoMeanwhileIsNotReplaced) {
  auto file = OutputFile::Open(At("a"), Existing::kReplace);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(mkfifo(At("a").c_str(), 0600), 0);
  EXPECT_FALSE(file.value()->Commit().ok());
  EXPECT_TRUE(fs::is_fifo(At("a")));
}

TEST_F(OutputFileTest, TwoAtOnceDoNotMixAndOneOfThemStays) {
  const std::string texts[] = {std::string(3'000'000, 'a'), std::string(3'000'000, 'b')};
  std::thread writers[] = {
      std::thread([&] { EXPECT_TRUE(WriteOutputFile(At("out"), texts[0]).ok()); }),
      std::thread([&] { EXPECT_TRUE(WriteOutputFile(At("out"), texts[1]).ok()); })};
  for (std::thread& writer : writers) writer.join();
  const std::string text = TextOf(At("out"));
  EXPECT_TRUE(text == texts[0] || text == texts[1]);
  EXPECT_EQ(Names(), std::set<std::string>{"out"});
}

TEST_F(OutputFileTest, TemporaryNamesAreUniqueHiddenAndPrivateWhereTheyReplace) {
  Put("a", "");
  ASSERT_EQ(chmod(At("a").c_str(), 0640), 0);
  auto one = OutputFile::Open(At("a"), Existing::kReplace);
  auto two = OutputFile::Open(At("a"), Existing::kReplace);
  ASSERT_TRUE(one.ok() && two.ok());
  const std::set<std::string> names = Names();
  ASSERT_EQ(names.size(), 3u);
  for (const std::string& name : names) {
    if (name == "a") continue;
    EXPECT_EQ(name.rfind(".trainprof-", 0), 0u) << name;
    EXPECT_EQ(name.size(), std::string(".trainprof-.part").size() + 32) << name;
    EXPECT_EQ(ModeOf(At(name.c_str())), 0640u);
  }
}

TEST_F(OutputFileTest, PastTheSizeLimitOfTheProcessNothingStaysAndNoSignalComes) {
  const int result = InChild([&] {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = WriteOutputFile(At("big"), std::string(100'000, 'x'));
    if (written.ok()) return 1;
    return written.error().find("File too large; the limit on file sizes (ulimit -f)") ==
                   std::string::npos
               ? 2
               : 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(Names(), std::set<std::string>{});
}

TEST_F(OutputFileTest, OnAFullDiskNothingStays) {
  fs::create_directory(At("small"));
  if (mount("none", At("small").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs root: to mount a small file system";
  }
  Put("small/old", "before");
  const auto fresh = WriteOutputFile(At("small/new"), std::string(1 << 20, 'x'));
  const auto replacing = WriteOutputFile(At("small/old"), std::string(1 << 20, 'x'));
  const std::string old = TextOf(At("small/old"));
  const auto count = std::distance(fs::directory_iterator(At("small")), fs::directory_iterator());
  umount(At("small").c_str());
  EXPECT_FALSE(fresh.ok());
  ASSERT_FALSE(replacing.ok());
  EXPECT_NE(replacing.error().find("No space left on device"), std::string::npos);
  EXPECT_EQ(old, "before");
  EXPECT_EQ(count, 1);
}

TEST_F(OutputFileTest, WhatIsHalfWrittenCanBeRemovedFromASignalHandler) {
  auto one = OutputFile::Open(At("a"), Existing::kReplace);
  auto two = OutputFile::Open(At("b"), Existing::kReplace);
  ASSERT_EQ(Names().size(), 2u);
  RemoveUnfinishedFiles();
  EXPECT_EQ(Names(), std::set<std::string>{});
}

TEST_F(OutputFileTest, WithStandardErrorClosedMessagesDoNotGoIntoTheFile) {
  EXPECT_EQ(InChild([&] {
              close(STDERR_FILENO);
              auto file = OutputFile::Open(At("a"), Existing::kReplace);
              const bool leaks = write(STDERR_FILENO, "a message", 9) == 9;
              return file.ok() && file.value()->Commit().ok() && !leaks ? 0 : 1;
            }),
            0);
  EXPECT_EQ(TextOf(At("a")), "");
}

TEST_F(OutputFileTest, CheckingSaysTheSameAndMakesNothing) {
  Put("there", "");
  EXPECT_TRUE(CheckOutputFile(At("new"), Existing::kRefuse).ok());
  EXPECT_TRUE(CheckOutputFile(At("there"), Existing::kReplace).ok());
  EXPECT_FALSE(CheckOutputFile(At("there"), Existing::kRefuse).ok());
  EXPECT_FALSE(CheckOutputFile(At("no/such"), Existing::kReplace).ok());
  EXPECT_TRUE(IsWrittenInto("/dev/null"));
  EXPECT_TRUE(IsWrittenInto("/dev/fd/2"));
  EXPECT_FALSE(IsWrittenInto(At("there")));
  EXPECT_EQ(Names(), std::set<std::string>{"there"});
}

}  // namespace
}  // namespace trainprof
