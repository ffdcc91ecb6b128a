// JSON text as values: bounded in depth and number, no name twice.
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
  std::vector<std::string> names = {};  ///< object: of its items
  std::vector<Json> items = {};

  const Json* find(std::string_view name) const;  ///< nullptr where there is none
};

/// Errors: invalid_argument with line, byte, or path of names.
Result<Json> parse_json(std::string_view text);

/// A value and how to get to it: "gpus[0].threadblocks[2].ops[1].name".
struct JsonAt {
  const Json* value = nullptr;
  std::string path = {};
  explicit operator bool() const { return value != nullptr; }
};

/// Takes values out. The first thing that is wrong is kept and everything after it is taken as right, so that reading
/// goes on in a straight line and is judged once.
class JsonReader {
 public:
  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{.code = Code::invalid_argument, .what = error_}; }
  void refuse(const JsonAt& at, std::string_view why);

  JsonAt member(const JsonAt& at, std::string_view name);  ///< refused where there is none
  JsonAt optional_member(const JsonAt& at, std::string_view name);
  std::vector<JsonAt> items(const JsonAt& at);                  ///< of an array
  int number(const JsonAt& at, long long low, long long high);  ///< `low` when it is wrong
  long long size(const JsonAt& at);                             ///< at least 0; what is beyond the type is its maximum
  int pick(const JsonAt& at, std::size_t count);                ///< a place in a list of so many; 0 when it is wrong
  bool boolean(const JsonAt& at);
  std::string_view text(const JsonAt& at);

 private:
  std::string error_;
};

}  // namespace tutti::formats
