// JSON text as values: bounded in depth and number, with unique names per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti::formats {

struct Json {
  enum class Kind : std::uint8_t { null, boolean, integer, fraction, text, array, object };
  Kind kind = Kind::null;
  long long number = 0;  ///< integer, or 0 and 1 for a boolean
  std::string text = {};
  std::vector<std::string> names = {};  ///< of an object's items
  std::vector<Json> items = {};

  const Json* find(std::string_view name) const;  ///< nullptr if there is none
};

/// Errors: invalid_argument with line, byte, or path of names.
Result<Json> parse_json(std::string_view text);

/// A value and its path: "gpus[0].threadblocks[2].ops[1].name".
struct JsonAt {
  const Json* value = nullptr;
  std::string path = {};
  explicit operator bool() const { return value != nullptr; }
};

/// Reads values. Keeps the first error and treats everything after it as correct, so that callers need to check only
/// once, at the end.
class JsonReader {
 public:
  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{.code = Code::invalid_argument, .what = error_}; }
  void refuse(const JsonAt& at, std::string_view why);

  JsonAt member(const JsonAt& at, std::string_view name);  ///< an error if there is none
  JsonAt optional_member(const JsonAt& at, std::string_view name);
  std::vector<JsonAt> items(const JsonAt& at);  ///< of an array
  std::vector<JsonAt> optional_items(const JsonAt& at, std::string_view name);
  int number(const JsonAt& at, long long low, long long high);  ///< `low` after an error
  long long size(const JsonAt& at);                             ///< at least 0; the maximum of the type if larger
  /// an index into a list of `count` items; 0 after an error
  int pick(const JsonAt& at, std::size_t count);
  bool boolean(const JsonAt& at);
  std::string_view text(const JsonAt& at);

 private:
  std::string error_;
};

}  // namespace tutti::formats
