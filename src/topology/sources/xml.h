// Reads XML files from untrusted sources: size and depth are bounded, and errors give the line.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pugixml.hpp>

#include "base/error.h"

namespace tutti::topology {

inline constexpr std::size_t devices_max = 1 << 14;
inline constexpr int depth_max = 64;

/// Keeps the first error; everything after it is treated as correct.
class Xml {
 public:
  /// Errors: invalid_argument, "line 3: not XML: …".
  static Result<std::unique_ptr<Xml>> parse(std::string_view text);

  pugi::xml_node root() const { return document_.document_element(); }
  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{.code = Code::invalid_argument, .what = error_}; }
  void refuse(const pugi::xml_node& node, std::string_view why);

  /// The number in an attribute; nothing if there is none. An error if it is not a number from `low` to `high`.
  std::optional<long long> number(const pugi::xml_node& node, const char* name, long long low, long long high);
  int number_or(int otherwise, const pugi::xml_node& node, const char* name, int low, int high) {
    return static_cast<int>(number(node, name, low, high).value_or(otherwise));
  }
  /// Hexadecimal, with or without 0x.
  std::uint32_t hex_or_zero(const pugi::xml_node& node, const char* name);
  /// At most 255 characters; without control characters.
  std::string text(const pugi::xml_node& node, const char* name);

 private:
  int line(std::ptrdiff_t offset) const;

  pugi::xml_document document_;
  std::vector<std::size_t> ends_;  // end positions of lines
  std::string error_;
};

/// Child elements, without comments and text.
std::vector<pugi::xml_node> elements(const pugi::xml_node& node);

}  // namespace tutti::topology
