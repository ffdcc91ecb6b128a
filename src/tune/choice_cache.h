// Keeps which algorithm was found to be the fastest for which size, so that the next process need not predict it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"

namespace tutti {

/// A folder with a file for each choice, next to the machine's numbers. Several processes may use it at once: where all
/// ranks of a host need the same choice, one of them makes it. One thread at a time uses an object.
class ChoiceCache {
 public:
  /// `build`: the library's; other builds may choose otherwise, so their choices are not found. `patience_ns`: how long
  /// `find` waits for another process.
  ChoiceCache(std::string folder, std::string build, std::int64_t patience_ns = usual_patience_ns)
      : folder_(std::move(folder)), build_(std::move(build)), patience_ns_(patience_ns) {}

  /// The text kept for `grounds`, which may hold any bytes; nothing if there is none, or if it is damaged. While
  /// another process of the folder makes a choice, waits for it, but not for ever. After nothing, it is this
  /// process that makes the choice, and others wait until it calls `keep`, or ends.
  std::optional<std::string> find(std::string_view grounds);
  /// Keeps `text`. Of more than files_max files, the older half is removed. Errors: system.
  Result<void> keep(std::string_view grounds, std::string_view text);

  static constexpr std::size_t files_max = 256;
  static constexpr std::int64_t usual_patience_ns = 1'000'000'000;

 private:
  struct Name {
    std::string path;
    std::string head;  // the file's first lines: they identify the grounds
  };
  Name name(std::string_view grounds) const;
  static std::optional<std::string> read(const Name& mine);
  void wait_for_turn();
  void make_room() const;

  std::string folder_;
  std::string build_;
  std::int64_t patience_ns_;
  UniqueFd turn_;  // locked while this process makes a choice
};

}  // namespace tutti
