// The schedule that a command works on: a built-in one, or one in a file.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "formats/imported.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti::tool {

/// The user's choice.
struct Source {
  std::string name;  ///< a collective, or a file
  std::string algo;
  int ranks = 4;
  int root = 0;
};

/// Without a name: the algorithm of a call of 1 MiB through slots between ranks of one host, by built-in numbers.
const Algorithm& usual_algorithm(const Shape& shape);

void add_source(CLI::App& command, Source& source);

/// A proven schedule.
struct Found {
  std::string title;
  Schedule schedule;
  Meaning meaning;
};

/// Builds or reads the schedule, and verifies it. Errors: invalid_argument, system, internal.
Result<Found> find(const Source& source);

/// XML or JSON, distinguished by the first character. Errors: those of import_msccl and import_mscclpp, with the file's
/// name.
Result<formats::Imported> import_file(const std::string& path, Rank root);

/// "allreduce", "all_reduce", "All-Reduce". Errors: invalid_argument.
Result<Collective> collective_of(std::string_view name);

/// "inline", "mapped", "cma", "slots". Errors: invalid_argument.
Result<Access> access_of(std::string_view word);

/// Prints the error to standard error. Returns Exit::refused.
int fail(const Error& error);

/// Writes to a file, or to standard output if `path` is "-". Returns an Exit.
int put(const std::string& path, std::string_view text);

}  // namespace tutti::tool
