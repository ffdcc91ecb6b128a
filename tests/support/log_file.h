// What a process of a test logs.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace tutti::testing {

/// Of the process that it is made in, from level INFO on; before tutti is first called.
class LogFile {
 public:
  LogFile() : path_(::testing::TempDir() + "tutti_log_" + std::to_string(::getpid())) {
    ::setenv("TUTTI_DEBUG", "INFO", 1);
    ::setenv("TUTTI_DEBUG_FILE", path_.c_str(), 1);
  }
  ~LogFile() { std::filesystem::remove(path_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace tutti::testing
