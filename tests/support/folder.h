// A folder of a test's own, gone with all that is in it when the test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace tutti {

class Folder {
 public:
  Folder() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = ::testing::TempDir() + "tutti_XXXXXX";
};

}  // namespace tutti
