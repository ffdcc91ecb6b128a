// Every setting: one table, read once, with where each value came from.
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

/// shared: compared at init, all ranks of a communicator must agree. local: a rank's own business.
enum class Scope { shared, local };
/// bytes: a number with an optional K, M or G. choice: one of a list, in any case. secret: text that is never shown.
enum class SettingKind { text, integer, bytes, choice, secret };

struct Setting {
  std::string_view name;  ///< "TUTTI_DEBUG"
  SettingKind kind;
  Scope scope;
  std::string_view default_value;
  std::int64_t min;  ///< integer, bytes
  std::int64_t max;
  std::string_view choices;  ///< "WARN|INFO|…", choice
  std::string_view help;     ///< one sentence, for --help and docs
  std::string_view help_group;
};

std::span<const Setting> settings();

/// The table as docs/settings.md shows it.
std::string settings_page();

/// Values of all settings. Precedence: environment, TUTTI_CONF_FILE or ~/.tutti.conf, /etc/tutti.conf, default.
///
/// A file has NAME=VALUE lines and lines of comment that begin with #. An empty value is no value, and none is longer
/// than 16 KiB. Values are kept in one spelling, so that 64K and 65536 are the same to `text` and `shared_hash`.
class Config {
 public:
  /// A file's text. Errors: system (there is none, or it may not be read), invalid_argument (what is there is no file).
  using Read = std::function<Result<std::string>(const std::string& path)>;

  /// `environment` lists NAME=VALUE. A value that does not parse is an error that names it, its origin and what is
  /// allowed; an unknown TUTTI_ name is a warning with the nearest known name. A file that nobody named may be missing.
  static Result<Config> load(std::span<const std::string> environment, const Read& read);
  /// From this process's environment and files.
  static Result<Config> from_process();

  /// Names are those of the table: asking for another one is our own mistake.
  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;       ///< integer, bytes; of a choice, its place in the list
  const std::string& origin(std::string_view name) const;  ///< "environment", "/etc/tutti.conf:3", "default"
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The settings that somebody set, one "NAME=value (origin)" each, for the log; of a secret only the origin.
  std::vector<std::string> set_by_user() const;

  /// The shared settings that are not at their default, as "NAME=value NAME=value", and a hash of all shared ones.
  std::string shared_text() const;
  std::uint64_t shared_hash() const;

 private:
  struct Value {
    std::string text;
    std::int64_t number = 0;
    std::string origin;
  };
  Config();
  Result<void> set(std::string_view name, std::string_view value, const std::string& origin);
  Result<void> set_from_file(std::string_view text, const std::string& path);
  const Value& value(std::string_view name) const;

  std::map<std::string_view, Value, std::less<>> values_;
  std::vector<std::string> warnings_;
};

}  // namespace tutti
