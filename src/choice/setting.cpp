// Parses TUTTI_ALGO and explains errors in it.
#include "choice/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "choice/select.h"

namespace tutti {
namespace {

/// Removes case, underscores and blanks: "AllReduce" and "all_reduce" are the same word.
std::string plain(std::string_view word) {
  std::string result;
  for (const char c : word)
    if (c != '_' && !std::isspace(static_cast<unsigned char>(c)))
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool same(std::string_view a, std::string_view b) {
  return plain(a) == plain(b);
}

/// Returns the text before the first `separator`; `text` becomes the rest.
std::string_view next(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

struct Entry {
  std::optional<std::string_view> collective;
  bool exclude = false;
  std::string_view names;
};

Entry parsed(std::string_view text) {
  Entry entry;
  if (text.find(':') != std::string_view::npos) entry.collective = trimmed(next(text, ':'));
  text = trimmed(text);
  entry.exclude = text.starts_with('^');
  entry.names = entry.exclude ? text.substr(1) : text;
  return entry;
}

/// The names of a list, which commas separate.
std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) words.push_back(trimmed(next(list, ',')));
  return words;
}

/// Number of letters to add, drop or change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

Error unknown(std::string_view kind, std::string_view word, const std::vector<std::string_view>& known) {
  const std::string written = plain(word.substr(0, 64));
  const auto nearest =
      std::ranges::min(known, {}, [&](std::string_view name) { return distance(written, plain(name)); });
  return Error{.code = Code::invalid_argument,
               .what = fmt::format("TUTTI_ALGO: unknown {} \"{}\", did you mean \"{}\"?", kind, word, nearest)};
}

}  // namespace

bool names(std::string_view word, const Algorithm& algorithm) {
  return same(word, algorithm.name) || same(word, algorithm.family->name) ||
         (algorithm.family == &algorithm::binomial && same(word, "tree"));
}

AlgorithmFilter::AlgorithmFilter(std::string_view forced, Collective collective) {
  bool own = false;
  while (!forced.empty()) {
    const Entry entry = parsed(next(forced, ';'));
    if (entry.names.empty() || (own && !entry.collective)) continue;
    if (entry.collective && !same(*entry.collective, name(collective))) continue;
    own = entry.collective.has_value();
    names_ = words_of(entry.names);
    exclude_ = entry.exclude;
  }
}

bool AlgorithmFilter::allows(const Algorithm& algorithm) const {
  const auto named = [&](std::string_view word) { return names(word, algorithm); };
  return names_.empty() || std::ranges::any_of(names_, named) != exclude_;
}

Result<void> check_algo_setting(std::string_view forced) {
  std::vector<std::string_view> collectives, known = {"tree"};
  for (int i = 0; i < collective_count; ++i) collectives.push_back(name(static_cast<Collective>(i)));
  for (const Family* family : families()) known.push_back(family->name);
  for (const Algorithm& algorithm : algorithms()) known.push_back(algorithm.name);

  while (!forced.empty()) {
    const std::string_view text = trimmed(next(forced, ';'));
    if (text.empty()) continue;
    const Entry entry = parsed(text);
    const auto is = [](std::string_view word) { return [word](std::string_view name) { return same(word, name); }; };
    if (entry.collective && std::ranges::none_of(collectives, is(*entry.collective)))
      return unknown("collective", *entry.collective, collectives);
    if (trimmed(entry.names).empty())
      return Error{.code = Code::invalid_argument, .what = fmt::format("TUTTI_ALGO: \"{}\" names no algorithm", text)};
    for (const std::string_view word : words_of(entry.names))
      if (std::ranges::none_of(known, is(word))) return unknown("algorithm", word, known);
  }
  return {};
}

}  // namespace tutti
