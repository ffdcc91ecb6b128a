// Keeps which algorithm was found to be the fastest for which size, so that the next process need not predict it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

/// A folder with a file for each choice, next to the machine's numbers. Several processes may use it at once.
class KeptChoices {
 public:
  /// `build`: the library's; other builds may choose otherwise, so their choices are not found.
  KeptChoices(std::string folder, std::string build) : folder_(std::move(folder)), build_(std::move(build)) {}

  /// The text kept for `grounds`, which may hold any bytes; nothing if there is none, or if it is damaged.
  std::optional<std::string> find(std::string_view grounds) const;
  /// Keeps `text`. Of more than files_max files, the older half is removed. Errors: system.
  Result<void> keep(std::string_view grounds, std::string_view text) const;

  static constexpr std::size_t files_max = 256;

 private:
  struct Name {
    std::string path;
    std::string head;  // the file's first lines: they identify the grounds
  };
  Name name(std::string_view grounds) const;
  void make_room() const;

  std::string folder_;
  std::string build_;
};

}  // namespace tutti
