// Whole files: what they say comes back, what is no file or too large is refused.
#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/dylib.h"
#include "base/unique_fd.h"
#include "support/folder.h"

namespace tutti {
namespace {

TEST(File, WhatIsWrittenIsRead) {
  const Folder folder;
  std::string text(300'000, 'x');
  text += '\0';
  for (const std::string& content : {text, std::string(), std::string("short")}) {
    ASSERT_TRUE(write_file(folder / "a", content));
    const auto back = read_file(folder / "a");
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, content);
  }
}

TEST(File, TheLimitIsTheLastLengthThatIsRead) {
  const Folder folder;
  ASSERT_TRUE(write_file(folder / "a", std::string(1024, 'x')));
  EXPECT_TRUE(read_file(folder / "a", 1024));
  const auto refused = read_file(folder / "a", 1023);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_FALSE(read_file("/dev/zero")) << "what never ends is not read for ever";
}

/// A pipe has no other end, a device does not end, a terminal waits for somebody.
TEST(File, NothingIsWaitedFor) {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd read_by_nobody(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  const std::string lonely = folder / "lonely";
  ASSERT_EQ(::mkfifo(lonely.c_str(), 0600), 0);
  for (const std::string& path : {pipe, lonely, std::string("/dev/zero"), std::string("/dev/ptmx"), std::string("/")}) {
    const auto got = read_file(path);
    ASSERT_FALSE(got) << path;
    EXPECT_EQ(got.error().code, Code::invalid_argument) << path;
    EXPECT_NE(got.error().what.find(path), std::string::npos) << path;
    EXPECT_FALSE(write_file(path, std::string(1 << 20, 'x'))) << path;
    EXPECT_FALSE(refuse_irregular(path)) << path;
    EXPECT_FALSE(Dylib::open({path.c_str()})) << path;
  }
  EXPECT_TRUE(read_file("/dev/null")->empty());
  EXPECT_TRUE(write_file("/dev/null", "x"));
  EXPECT_FALSE(read_file("/proc/self/status")->empty()) << "the kernel's files have no size";
  EXPECT_TRUE(refuse_irregular(folder / "none"));
}

TEST(File, ReplacedContentLeavesNothingOld) {
  const Folder folder;
  ASSERT_TRUE(write_file(folder / "a", "long text"));
  ASSERT_TRUE(write_file(folder / "a", "short"));
  EXPECT_EQ(*read_file(folder / "a"), "short");
}

TEST(File, EachRefusalNamesThePath) {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto from_pipe = read_file(pipe, file_bytes_max);
  ASSERT_FALSE(from_pipe);
  EXPECT_NE(from_pipe.error().what.find(pipe), std::string::npos);
  const auto from_folder = read_file(folder / ".");
  ASSERT_FALSE(from_folder);
  EXPECT_NE(from_folder.error().what.find("is a directory"), std::string::npos);
  const auto from_nothing = read_file(folder / "none");
  ASSERT_FALSE(from_nothing);
  EXPECT_EQ(from_nothing.error().sys_errno, ENOENT);
  EXPECT_FALSE(write_file(folder / "none/a", "x"));
}

TEST(File, WhatIsReplacedAtOnceLeavesNothingElse) {
  const Folder folder;
  ASSERT_TRUE(write_atomically(folder / "made/on/demand/a", "first"));
  ASSERT_TRUE(write_file(folder / "target", "kept"));
  std::filesystem::create_symlink(folder / "target", folder / "made/on/demand/b");
  ASSERT_TRUE(write_atomically(folder / "made/on/demand/b", "second"));
  EXPECT_EQ(*read_file(folder / "target"), "kept") << "a name that leads elsewhere is not followed";
  EXPECT_EQ(*read_file(folder / "made/on/demand/b"), "second");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "made/on/demand")) ++files;
  EXPECT_EQ(files, 2);
  EXPECT_FALSE(write_atomically("/proc/no/such", "x"));
}

TEST(File, TheLimitOfFilesIsAnErrorAndNoSignal) {
  const Folder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const rlim_t most : {0, 4096}) {
    const rlimit lower{.rlim_cur = most, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
    const std::string text(100'000, 'x');
    const auto written = write_file(folder / "a", text), replaced = write_atomically(folder / "b", text);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    for (const auto* const result : {&written, &replaced}) {
      ASSERT_FALSE(*result);
      EXPECT_EQ(result->error().sys_errno, EFBIG);
      EXPECT_NE(result->error().what.find("ulimit -f"), std::string::npos);
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  }
}

}  // namespace
}  // namespace tutti
