// Parses matrices of nvidia-smi into rows, columns and cells, without interpreting them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti::topology {

struct SmiMatrix {
  std::vector<std::string> names;               ///< of rows and columns
  std::vector<std::vector<std::string>> cells;  ///< "" if truncated
  std::vector<std::string> cpus;                ///< of rows: "0-15,32-47"; "" if unknown
  std::vector<int> numa;                        ///< of rows: the first of the list; -1 if unknown
  std::vector<std::string> nic_names;           ///< of the columns NIC0, NIC1, … if the legend has them
  bool is_p2p() const;                          ///< OK, NS, …
  int gpus() const;
};

/// All matrices in order. Errors: invalid_argument with the line, if there is none or one is malformed.
Result<std::vector<SmiMatrix>> read_smi_text(std::string_view text);

}  // namespace tutti::topology
