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

std::vector<int> node_numbers(const std::string& folder) {
  std::vector<int> numbers;
  for (const std::string& entry : names_in(folder)) {
    int number = -1;
    if (entry.starts_with("node")) std::from_chars(entry.data() + 4, entry.data() + entry.size(), number);
    if (number >= 0) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace tutti::topology
