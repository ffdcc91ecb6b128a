#include "topology/sources/smi_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

constexpr std::size_t names_max = 512, matrices_max = 64;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() < 8 && is_number(word.substr(3));
}

bool is_p2p_cell(std::string_view word) {
  constexpr std::array words = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
  return std::ranges::find(words, word) != words.end();
}

bool is_cell(std::string_view word) {
  constexpr std::array words = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  if (word.starts_with("NV") && word.size() < 6 && is_number(word.substr(2))) return true;
  return std::ranges::find(words, word) != words.end() || is_p2p_cell(word);
}

/// Removes a terminal's escape sequences, also those that have lost their first character: "[4mGPU0".
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '\x1b';
    const std::size_t open = escape ? at + 1 : at;
    if (open < text.size() && text[open] == '[') {
      std::size_t end = open + 1;
      while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';')) ++end;
      const bool letter = end < text.size() && text[end] >= '@' && text[end] <= '~';
      if (letter && (escape || text[end] == 'm')) {
        at = end;
        continue;
      }
    }
    if (!escape && text[at] != '\r') plain += text[at];
  }
  return plain;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t first = line.find_first_not_of(" \t", at);
    if (first == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", first), line.size());
    words.push_back(line.substr(first, end - first));
    at = end;
  }
  return words;
}

class Reader {
 public:
  Result<std::vector<SmiMatrix>> read(std::string_view text);

 private:
  void line(const std::vector<std::string_view>& words);
  bool header(const std::vector<std::string_view>& words);
  void columns(SmiMatrix& matrix, const std::vector<std::string_view>& words);
  bool row(const std::vector<std::string_view>& words);
  bool legend(const std::vector<std::string_view>& words);
  void more(const std::vector<std::string_view>& words);
  void affinity(const std::vector<std::string_view>& words, std::size_t from);
  void refuse(std::string_view why) {
    if (error_.empty()) error_ = fmt::format("line {}: {}", number_, why);
  }

  std::vector<SmiMatrix> matrices_;
  int number_ = 0;
  int row_ = -1;              // the row of the last line
  bool header_open_ = false;  // the last line was a header that may continue
  std::string error_;
};

/// A name of a row or column; not a cell, an affinity column, or prose.
bool may_be_name(std::string_view word) {
  return word.size() < 64 && !is_cell(word) && word != "CPU" && word != "NUMA" && word != "GPU" && word != "=";
}

/// Adds names of columns; the header may continue if all words are names.
void Reader::columns(SmiMatrix& matrix, const std::vector<std::string_view>& words) {
  const auto end = std::ranges::find_if_not(words, may_be_name);
  matrix.names.insert(matrix.names.end(), words.begin(), end);
  header_open_ = end == words.end();
}

bool Reader::header(const std::vector<std::string_view>& words) {
  if (words.empty() || !is_gpu(words[0])) return false;
  if (words.size() > 1 && is_cell(words[1])) return false;
  SmiMatrix matrix;
  columns(matrix, words);
  if (matrices_.size() >= matrices_max) return refuse("too many matrices"), true;
  matrices_.push_back(std::move(matrix));
  row_ = -1;
  return true;
}

bool Reader::row(const std::vector<std::string_view>& words) {
  if (matrices_.empty() || words.size() < 2 || !is_cell(words[1])) return false;
  SmiMatrix& matrix = matrices_.back();
  const auto at = std::ranges::find(matrix.names, words[0]);
  if (at == matrix.names.end()) {
    if (is_gpu(words[0])) refuse(fmt::format("there is no column {}", words[0]));
    return false;
  }
  header_open_ = false;
  if (matrix.cells.empty()) {
    if (matrix.names.size() > names_max) return refuse(fmt::format("more than {} columns", names_max)), true;
    auto sorted = matrix.names;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      return refuse(fmt::format("there are two columns {}", *twice)), true;
    matrix.cells.assign(matrix.names.size(), {});
    matrix.cpus.assign(matrix.names.size(), "");
    matrix.numa.assign(matrix.names.size(), -1);
  }
  row_ = static_cast<int>(at - matrix.names.begin());
  if (!matrix.cells[static_cast<std::size_t>(row_)].empty())
    return refuse(fmt::format("there are two rows {}", words[0])), true;
  more({words.begin() + 1, words.end()});
  return true;
}

/// Adds cells and affinities to the current row.
void Reader::more(const std::vector<std::string_view>& words) {
  SmiMatrix& matrix = matrices_.back();
  auto& cells = matrix.cells[static_cast<std::size_t>(row_)];
  std::size_t at = 0;
  for (; at < words.size() && cells.size() < matrix.names.size(); ++at) {
    if (!is_cell(words[at])) break;
    cells.emplace_back(words[at] == "SOC" ? "SYS" : words[at]);
  }
  if (at < words.size() && is_cell(words[at])) refuse(fmt::format("more cells than {} columns", matrix.names.size()));
  if (cells.size() < matrix.names.size() && at < words.size())
    refuse(fmt::format("\"{}\" is not a kind of path", words[at].substr(0, 40)));
  affinity(words, at);
}

void Reader::affinity(const std::vector<std::string_view>& words, std::size_t from) {
  SmiMatrix& matrix = matrices_.back();
  const auto row = static_cast<std::size_t>(row_);
  for (std::size_t at = from; at < words.size(); ++at) {
    const bool list =
        std::ranges::all_of(words[at], [](char c) { return (c >= '0' && c <= '9') || c == ',' || c == '-'; });
    if (!list && words[at] != "N/A") return;
    if (at == from && list) matrix.cpus[row] = words[at];
    // The nodes after the first have memory but no CPUs, usually that of GPUs.
    if (at == from + 1 && list)
      std::from_chars(words[at].data(), words[at].data() + words[at].size(), matrix.numa[row]);
  }
}

/// "NIC0: mlx5_0"
bool Reader::legend(const std::vector<std::string_view>& words) {
  if (matrices_.empty() || words.size() != 2 || !words[0].starts_with("NIC") || !words[0].ends_with(":")) return false;
  std::size_t number = 0;
  const std::string_view digits = words[0].substr(3, words[0].size() - 4);
  if (!is_number(digits) || digits.size() > 3) return false;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  auto& names = matrices_.back().nic_names;
  if (names.size() <= number) names.resize(number + 1);
  if (words[1].size() < 64) names[number] = words[1];
  return true;
}

void Reader::line(const std::vector<std::string_view>& words) {
  if (words.empty()) {
    row_ = -1;
    header_open_ = false;
    return;
  }
  if (header(words) || row(words) || legend(words) || matrices_.empty()) return;
  SmiMatrix& matrix = matrices_.back();
  // Terminals wrap long lines.
  const bool names = std::ranges::all_of(words, may_be_name) || words.front() == "CPU" || words.front() == "NUMA";
  if (header_open_ && (names || (may_be_name(words.front()) && words.front().starts_with("NIC"))))
    return columns(matrix, words);
  if (row_ >= 0 && matrix.cells[static_cast<std::size_t>(row_)].size() < matrix.names.size() && is_cell(words.front()))
    more(words);
  else
    row_ = -1;
}

Result<std::vector<SmiMatrix>> Reader::read(std::string_view text) {
  if (text.size() > file_bytes_max) refuse("the file is larger than 16 MiB");
  const std::string plain = error_.empty() ? without_colours(text) : std::string();
  std::string_view rest = plain;
  while (!rest.empty() && error_.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ++number_;
    line(words_of(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::erase_if(matrices_, [](const SmiMatrix& matrix) { return matrix.cells.empty(); });
  if (matrices_.empty()) number_ = 1, refuse("there is no matrix with a row GPU0");
  if (!error_.empty()) return Error{.code = Code::invalid_argument, .what = error_};
  for (SmiMatrix& matrix : matrices_)
    for (auto& cells : matrix.cells) cells.resize(matrix.names.size());
  return std::move(matrices_);
}

}  // namespace

bool SmiMatrix::is_p2p() const {
  return std::ranges::any_of(cells, [](const auto& row) { return std::ranges::any_of(row, is_p2p_cell); });
}

int SmiMatrix::gpus() const {
  return static_cast<int>(std::ranges::count_if(names, is_gpu));
}

Result<std::vector<SmiMatrix>> read_smi_text(std::string_view text) {
  return Reader().read(text);
}

}  // namespace tutti::topology
