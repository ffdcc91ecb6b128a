// libibverbs and librdmacm, loaded where they are installed: one table of functions for each.
#pragma once

#include <memory>
#include <string>

#include "base/dylib.h"
#include "base/error.h"
#include "transport/verbs/cm_abi.h"

namespace tutti::verbs {

/// libibverbs. The members have the names of the functions.
struct Library {
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define X(result, name, parameters) result(*name) parameters = nullptr;
#include "transport/verbs/functions.inc"
#undef X
  /// Reads an entry of a port's table of GIDs together with its type; null in libraries before 2020.
  int (*ibv_query_gid_ex)(Context* context, std::uint32_t port, std::uint32_t index, GidEntry* entry,
                          std::uint32_t flags, std::size_t entry_size) = nullptr;
  Dylib dylib;

  /// `path` empty: libibverbs.so.1. Errors: system (not installed, or a function is missing).
  static Result<std::shared_ptr<const Library>> load(const std::string& path);
};

/// librdmacm, as well.
struct CmLibrary {
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define X(result, name, parameters) result(*name) parameters = nullptr;
#include "transport/verbs/cm_functions.inc"
#undef X
  Dylib dylib;

  /// `verbs`: the path of a libibverbs that may have these functions, too; if it has not, or is empty: librdmacm.so.1.
  /// Errors: system (not installed, or a function is missing).
  static Result<std::shared_ptr<const CmLibrary>> load(const std::string& verbs);
};

}  // namespace tutti::verbs
