#include "topology/sources/sysfs_files.h"

#include <charconv>

#include "base/file.h"

namespace tutti::topology {

std::string line_of(const std::string& path) {
  const std::string text = content_of(path);
  return text.substr(0, text.find('\n'));
}

int number_of(const std::string& path, int otherwise) {
  const std::string text = line_of(path);
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace tutti::topology
