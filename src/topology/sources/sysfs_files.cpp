#include "topology/sources/sysfs_files.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/file.h"

namespace tutti::topology {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

std::string line_of(const std::string& path) {
  const auto text = read_file(path);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

int number_of(const std::string& path, int otherwise) {
  const std::string text = line_of(path);
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace tutti::topology
