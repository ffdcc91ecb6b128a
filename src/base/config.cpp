#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

#include "base/file.h"

namespace tutti {
namespace {

/// Tests pass seeds and limits to themselves in variables with this prefix.
constexpr std::string_view test_prefix = "TUTTI_TEST_";
/// Far more than any list needs; some lists are searched for every new kind of call.
constexpr std::size_t value_bytes_max = 16384;
constexpr std::size_t value_bytes_shown = 200;
constexpr std::string_view system_file = "/etc/tutti.conf";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const auto begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

struct Parsed {
  std::string text;
  std::int64_t number = 0;
};

std::optional<Parsed> parse_choice(const Setting& setting, std::string_view value) {
  std::int64_t place = 0;
  for (std::string_view left = setting.choices; !left.empty(); ++place) {
    const auto one = left.substr(0, left.find('|'));
    if (same_ignoring_case(one, value)) return Parsed{std::string(one), place};
    left.remove_prefix(std::min(one.size() + 1, left.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> suffix_factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (same_ignoring_case(suffix, "K")) return std::int64_t{1} << 10;
  if (same_ignoring_case(suffix, "M")) return std::int64_t{1} << 20;
  if (same_ignoring_case(suffix, "G")) return std::int64_t{1} << 30;
  return std::nullopt;
}

std::optional<Parsed> parse_number(const Setting& setting, std::string_view value) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(value.data() + value.size() - end));
  if (problem != std::errc{} || (setting.kind == SettingKind::integer && !suffix.empty())) return std::nullopt;
  const auto factor = suffix_factor(suffix);
  if (!factor || __builtin_mul_overflow(number, *factor, &number)) return std::nullopt;
  if (number < setting.min || number > setting.max) return std::nullopt;
  if (setting.kind == SettingKind::integer || number == 0) return Parsed{std::to_string(number), number};
  for (const auto& [letter, shift] : {std::pair{'G', 30}, std::pair{'M', 20}, std::pair{'K', 10}})
    if (number % (std::int64_t{1} << shift) == 0) return Parsed{fmt::format("{}{}", number >> shift, letter), number};
  return Parsed{std::to_string(number), number};
}

std::optional<Parsed> parse(const Setting& setting, std::string_view value) {
  switch (setting.kind) {
    case SettingKind::text:
    case SettingKind::secret: return Parsed{std::string(value), 0};
    case SettingKind::choice: return parse_choice(setting, value);
    case SettingKind::integer:
    case SettingKind::bytes: return parse_number(setting, value);
  }
  return std::nullopt;
}

std::string allowed(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::choice: return fmt::format("one of {}", setting.choices);
    case SettingKind::integer: return fmt::format("a whole number from {} to {}", setting.min, setting.max);
    case SettingKind::bytes: return fmt::format("{} to {} bytes (K, M and G may follow)", setting.min, setting.max);
    case SettingKind::text:
    case SettingKind::secret: break;
  }
  return "text";
}

const Setting* find(std::string_view name) {
  const auto at = std::ranges::find(settings(), name, &Setting::name);
  return at == settings().end() ? nullptr : &*at;
}

/// The Levenshtein distance: the number of letters to add, drop or change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

std::string unknown_setting(std::string_view name, std::string_view origin) {
  const auto nearest = std::ranges::min(
      settings(), {}, [name](const Setting& setting) { return distance(name.substr(0, 64), setting.name); });
  const bool near = distance(name.substr(0, 64), nearest.name) <= 4;
  const auto shown = name.substr(0, value_bytes_shown);
  return near ? fmt::format("unknown setting {} ({}): did you mean {}?", shown, origin, nearest.name)
              : fmt::format("unknown setting {} ({})", shown, origin);
}

constexpr std::size_t file_text_max = std::size_t{1} << 20;

/// Never blocks, whatever kind of file lies there.
Result<std::string> read_settings(const std::string& path) {
  return read_file(path, file_text_max);
}

Error not_readable(Error why, const std::string& setting) {
  why.code = Code::invalid_argument;
  why.what += "; settings are read from a regular file of at most 1 MiB";
  return std::move(why).during(setting);
}

std::vector<std::string> environment_of_process() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

std::optional<std::string_view> lookup(std::span<const std::string> environment, std::string_view name) {
  for (const std::string_view entry : environment)
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      if (const auto value = entry.substr(name.size() + 1); !value.empty()) return value;
  return std::nullopt;
}

}  // namespace

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::ranges::equal(a, b, {}, upper, upper);
}

Config::Config() {
  for (const Setting& setting : settings()) {
    auto parsed = parse(setting, setting.default_value);
    assert(parsed);
    values_[setting.name] = {std::move(parsed->text), parsed->number, "default"};
  }
}

Result<void> Config::set(std::string_view name, std::string_view value, const std::string& origin) {
  if (value.empty() || name.starts_with(test_prefix)) return {};
  const Setting* setting = find(name);
  if (setting == nullptr) {
    warnings_.push_back(unknown_setting(name, origin));
    return {};
  }
  if (value.size() > value_bytes_max)
    return invalid_argument(fmt::format("{} ({}): the value has {} bytes, at most {} are allowed", name, origin,
                                        value.size(), value_bytes_max));
  auto parsed = parse(*setting, value);
  if (!parsed)
    return invalid_argument(
        fmt::format("{}={} ({}): must be {}", name, value.substr(0, value_bytes_shown), origin, allowed(*setting)));
  values_[setting->name] = {std::move(parsed->text), parsed->number, origin};
  return {};
}

Result<void> Config::set_line(std::string_view line, const std::string& origin) {
  const auto equals = line.find('=');
  const auto name = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || name.empty())
    return invalid_argument(fmt::format("{}: expected NAME=VALUE", origin));
  if (name == "TUTTI_CONF_FILE")
    return invalid_argument(fmt::format("{}: a settings file cannot name another settings file", origin));
  return set(name, trimmed(line.substr(equals + 1)), origin);
}

void Config::set_from_file(std::string_view text, const std::string& path) {
  for (int line_number = 1; !text.empty(); ++line_number) {
    const auto line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    note(set_line(line, fmt::format("{}:{}", path, line_number)));
  }
}

/// An error does not end the reading: what is good is needed to tell other ranks of the error.
void Config::note(Result<void> done) {
  if (!done && !refused_) refused_ = std::move(done).error();
}

Config Config::load_good(std::span<const std::string> environment, const Read& read) {
  Config config;
  const auto take = [&](const std::string& path, std::string_view setting) {
    auto text = read(path);
    if (text) return config.set_from_file(*text, path);
    // there is no file, or it belongs to another user
    if (setting.empty() && text.error().code == Code::system) return;
    config.note(not_readable(std::move(text).error(), setting.empty() ? "read settings" : std::string(setting)));
  };
  take(std::string(system_file), "");
  if (const auto named = lookup(environment, "TUTTI_CONF_FILE"))
    take(std::string(*named), "read TUTTI_CONF_FILE");
  else if (const auto home = lookup(environment, "HOME"))
    take(fmt::format("{}/.tutti.conf", *home), "");

  for (const std::string_view entry : environment) {
    const auto equals = entry.find('=');
    if (!entry.starts_with("TUTTI_") || equals == std::string_view::npos) continue;
    config.note(config.set(entry.substr(0, equals), trimmed(entry.substr(equals + 1)), "environment"));
  }
  return config;
}

Result<Config> Config::load(std::span<const std::string> environment, const Read& read) {
  Config config = load_good(environment, read);
  if (config.refused_) return *std::move(config.refused_);
  return config;
}

Result<Config> Config::from_process() {
  return load(environment_of_process(), read_settings);
}

Config Config::good_from_process() {
  return load_good(environment_of_process(), read_settings);
}

const Config::Value& Config::value(std::string_view name) const {
  const auto at = values_.find(name);
  assert(at != values_.end());
  return at->second;
}

std::vector<std::string> Config::set_by_user() const {
  std::vector<std::string> lines;
  for (const Setting& setting : settings()) {
    const Value& at = value(setting.name);
    if (at.origin == "default") continue;
    const bool hidden = setting.kind == SettingKind::secret;
    lines.push_back(fmt::format("{}={} ({})", setting.name, hidden ? "(hidden)" : at.text, at.origin));
  }
  return lines;
}

std::string Config::shared_text() const {
  std::string text;
  for (const Setting& setting : settings())
    if (const Value& at = value(setting.name); setting.scope == Scope::shared && at.text != setting.default_value)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.name, at.text);
  return text;
}

std::uint64_t Config::shared_hash() const {
  // FNV-1a: must be equal on every machine and in every build; no adversary is expected.
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const Setting& setting : settings())
    if (setting.scope == Scope::shared)
      for (const char c : fmt::format("{}={}\n", setting.name, value(setting.name).text))
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01b3;
  return hash;
}

}  // namespace tutti
