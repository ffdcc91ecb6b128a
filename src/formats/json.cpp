#include "formats/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "formats/source.h"

namespace tutti::formats {
namespace {

constexpr std::size_t depth_max = 32;
constexpr int values_max = 1 << 20;
constexpr std::size_t names_max = 1024;  // per object: each new name is compared with all others
constexpr int shown_max = 40;

const Json nothing;

/// Builds values from the parser's sequence of events.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({.kind = Json::Kind::boolean, .number = value ? 1 : 0}); }
  bool number_integer(number_integer_t value) override { return add({.kind = Json::Kind::integer, .number = value}); }
  bool number_unsigned(number_unsigned_t value) override {
    return number_integer(static_cast<long long>(std::min<number_unsigned_t>(value, LLONG_MAX)));
  }
  bool number_float(number_float_t, const string_t&) override { return add({.kind = Json::Kind::fraction}); }
  bool string(string_t& value) override { return add({.kind = Json::Kind::text, .text = std::move(value)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::Kind::object); }
  bool start_array(std::size_t) override { return open(Json::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back()->find(name) != nullptr)
      return fail(fmt::format("{}: \"{}\" occurs twice", path(), name.substr(0, shown_max)));
    if (open_.back()->names.size() == names_max)
      return fail(fmt::format("{}: an object of more than {} names", path(), names_max));
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) override {
    const std::size_t at = std::min(position, text_.size());
    const auto line = 1 + std::ranges::count(text_.substr(0, at), '\n');
    std::string_view why = problem.what();
    if (const auto start = why.find(": "); start != std::string_view::npos) why.remove_prefix(start + 2);
    return fail(fmt::format("line {} (byte {}): not JSON: {}", line, position, why));
  }

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool add(Json value) {
    if (++values_ > values_max) return fail(fmt::format("{}: more than {} values", path(), values_max));
    last_ = open_.empty() ? &root_ : &open_.back()->items.emplace_back();
    *last_ = std::move(value);
    return true;
  }
  bool open(Json::Kind kind) {
    if (open_.size() == depth_max) return fail(fmt::format("{}: more than {} levels deep", path(), depth_max));
    if (!add({.kind = kind})) return false;
    open_.push_back(last_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  std::string path() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      text += open_[i]->names.empty() ? fmt::format("[{}]", open_[i]->items.size() - 1)
                                      : fmt::format("{}{}", i == 0 ? "" : ".", open_[i]->names.back());
    return text.empty() ? "the file" : text.substr(0, 400);
  }

  std::string_view text_;
  Json root_;
  std::vector<Json*> open_;  // a value grows only while no value inside it is open, so these pointers stay valid
  Json* last_ = nullptr;     // value added; valid until the next one
  int values_ = 0;
  std::string error_;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  const auto at = static_cast<std::size_t>(found - names.begin());
  return at < items.size() ? &items[at] : nullptr;
}

Result<Json> parse_json(std::string_view text) {
  if (text.size() > file_bytes_max)
    return refused("line 1", fmt::format("the file is larger than {} MiB", file_bytes_max >> 20));
  Builder builder(text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return Error{.code = Code::invalid_argument, .what = builder.error()};
  return builder.take();
}

void JsonReader::refuse(const JsonAt& at, std::string_view why) {
  if (!failed()) error_ = fmt::format("{}: {}", at.path.empty() ? "the file" : at.path, why);
}

JsonAt JsonReader::member(const JsonAt& at, std::string_view name) {
  JsonAt found = optional_member(at, name);
  if (!found) refuse(at, fmt::format("has no \"{}\"", name));
  return found ? found : JsonAt{&nothing, at.path};
}

JsonAt JsonReader::optional_member(const JsonAt& at, std::string_view name) {
  if (at.value->kind != Json::Kind::object) {
    refuse(at, "is not an object");
    return {};
  }
  const Json* found = at.value->find(name);
  if (found == nullptr) return {};
  return {found, at.path.empty() ? std::string(name) : fmt::format("{}.{}", at.path, name)};
}

std::vector<JsonAt> JsonReader::optional_items(const JsonAt& at, std::string_view name) {
  const JsonAt list = optional_member(at, name);
  return list ? items(list) : std::vector<JsonAt>();
}

std::vector<JsonAt> JsonReader::items(const JsonAt& at) {
  std::vector<JsonAt> all;
  if (at.value->kind != Json::Kind::array) refuse(at, "is not an array");
  if (failed()) return all;
  all.reserve(at.value->items.size());
  for (std::size_t i = 0; i < at.value->items.size(); ++i)
    all.push_back({&at.value->items[i], fmt::format("{}[{}]", at.path, i)});
  return all;
}

int JsonReader::number(const JsonAt& at, long long low, long long high) {
  const Json& value = *at.value;
  if (value.kind != Json::Kind::integer)
    refuse(at, "is not a whole number");
  else if (value.number < low || value.number > high)
    refuse(at, fmt::format("{} is not one of {} … {}", value.number, low, high));
  else if (!failed())
    return static_cast<int>(value.number);
  return static_cast<int>(low);
}

long long JsonReader::size(const JsonAt& at) {
  const Json& value = *at.value;
  if (value.kind == Json::Kind::integer && value.number >= 0) return value.number;
  refuse(at, "is not a size");
  return 0;
}

int JsonReader::pick(const JsonAt& at, std::size_t count) {
  const int which = number(at, 0, INT_MAX);
  if (static_cast<std::size_t>(which) < count) return which;
  refuse(at, fmt::format("{}, and there are {} to choose from", which, count));
  return 0;
}

bool JsonReader::boolean(const JsonAt& at) {
  if (at.value->kind != Json::Kind::boolean) refuse(at, "is neither true nor false");
  return at.value->kind == Json::Kind::boolean && at.value->number != 0;
}

std::string_view JsonReader::text(const JsonAt& at) {
  if (at.value->kind != Json::Kind::text) refuse(at, "is not a string");
  return at.value->text;
}

}  // namespace tutti::formats
