// librdmacm, loaded where a device needs it: one table of its functions.
#pragma once

#include <memory>
#include <string>

#include "base/dylib.h"
#include "base/error.h"
#include "transport/verbs/cm_abi.h"

namespace tutti::verbs {

/// The members have the names of the functions.
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
