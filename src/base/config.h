// All settings: one table, read once, with the origin of each value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

/// shared: compared at init; all ranks of a communicator must agree. local: may differ between ranks.
enum class Scope { shared, local };
/// bytes: a number with an optional K, M or G. choice: one word of a list, case-insensitive. secret: text that is never
/// shown.
enum class SettingKind { text, integer, bytes, choice, secret };

struct Setting {
  std::string_view name;  ///< "TUTTI_DEBUG"
  SettingKind kind;
  Scope scope;
  std::string_view default_value;
  std::int64_t min;  ///< for integer and bytes
  std::int64_t max;
  std::string_view choices;  ///< for choice: "WARN|INFO|…"
  std::string_view help;     ///< one sentence, for --help and docs
  std::string_view help_group;
};

std::span<const Setting> settings();

/// The table as it appears in docs/settings.md.
std::string settings_page();

/// Of ASCII letters.
bool same_ignoring_case(std::string_view a, std::string_view b);

/// Values of all settings. Precedence: environment, TUTTI_CONF_FILE or ~/.tutti.conf, /etc/tutti.conf, default.
///
/// A file has NAME=VALUE lines, and comment lines that begin with #. An empty value counts as unset; a value has at
/// most 16 KiB. Values are stored in one spelling, so that 64K and 65536 are equal for `text` and `shared_hash`.
class Config {
 public:
  /// A file's text. Errors: system (no such file, or no permission to read it), invalid_argument (not a file).
  using Read = std::function<Result<std::string>(const std::string& path)>;

  /// `environment` lists NAME=VALUE. A value that does not parse is an error that names the setting, the value's origin
  /// and the allowed values. An unknown TUTTI_ name is a warning with the nearest known name. Only a file that the user
  /// named must exist.
  static Result<Config> load(std::span<const std::string> environment, const Read& read);
  /// As load, but whatever is an error there is left out.
  static Config load_good(std::span<const std::string> environment, const Read& read);
  /// From this process's environment and files.
  static Result<Config> from_process();
  static Config good_from_process();

  /// Names must be in the table: any other name is a bug in tutti.
  const std::string& text(std::string_view name) const { return value(name).text; }
  /// of an integer or bytes; of a choice, its index in the list
  std::int64_t integer(std::string_view name) const { return value(name).number; }
  /// "environment", "/etc/tutti.conf:3", "default"
  const std::string& origin(std::string_view name) const { return value(name).origin; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The settings that are not at their default, one "NAME=value (origin)" each, for the log; of a secret only the
  /// origin.
  std::vector<std::string> set_by_user() const;

  /// The shared settings that are not at their default, as "NAME=value NAME=value"; and a hash of all shared settings.
  std::string shared_text() const;
  std::uint64_t shared_hash() const;

 private:
  struct Value {
    std::string text;
    std::int64_t number = 0;
    std::string origin;
  };
  Config();
  void note(Result<void> done);
  Result<void> set(std::string_view name, std::string_view value, const std::string& origin);
  Result<void> set_line(std::string_view line, const std::string& origin);
  void set_from_file(std::string_view text, const std::string& path);
  const Value& value(std::string_view name) const;

  std::map<std::string_view, Value, std::less<>> values_;
  std::vector<std::string> warnings_;
  std::optional<Error> refused_;  ///< the first error of those that were read
};

}  // namespace tutti
