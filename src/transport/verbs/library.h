// libibverbs and librdmacm, loaded where they are installed: one table of functions for each.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/dylib.h"
#include "base/error.h"
#include "transport/verbs/cm_abi.h"

namespace tutti::verbs {

/// A library with its functions as members, which have their names.
struct LoadedLibrary {
  explicit LoadedLibrary(Dylib loaded) : dylib(std::move(loaded)) {}
  template <class Function>
  Function* find(const char* name) {
    auto* const found = dylib.symbol<Function>(name);
    if (found == nullptr) missing = name;
    return found;
  }

  Dylib dylib;
  const char* missing = nullptr;  ///< one that it does not have
};

/// libibverbs.
struct Library : LoadedLibrary {
  using LoadedLibrary::LoadedLibrary;
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define X(result, name, parameters) result(*name) parameters = find<result parameters>(#name);
#include "transport/verbs/functions.inc"
#undef X
  /// Reads an entry of a port's table of GIDs together with its type; null in libraries before 2020.
  int (*ibv_query_gid_ex)(Context* context, std::uint32_t port, std::uint32_t index, GidEntry* entry,
                          std::uint32_t flags, std::size_t entry_size) =
      dylib.symbol<int(Context*, std::uint32_t, std::uint32_t, GidEntry*, std::uint32_t, std::size_t)>(
          "_ibv_query_gid_ex");

  /// `path` empty: libibverbs.so.1. Errors: system (not installed, or a function is missing).
  static Result<std::shared_ptr<const Library>> load(const std::string& path);
};

/// librdmacm.
struct CmLibrary : LoadedLibrary {
  using LoadedLibrary::LoadedLibrary;
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define X(result, name, parameters) result(*name) parameters = find<result parameters>(#name);
#include "transport/verbs/cm_functions.inc"
#undef X

  /// `verbs`: the path of a libibverbs that may have these functions, too; if it has not, or is empty: librdmacm.so.1.
  /// Errors: system (not installed, or a function is missing).
  static Result<std::shared_ptr<const CmLibrary>> load(const std::string& verbs);
};

/// Of a descriptor that one of them has made: else whoever asks for an event waits for one. False: errno tells why.
bool stop_blocking(int fd);

}  // namespace tutti::verbs
