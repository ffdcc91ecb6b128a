// CUDA's driver as one table of functions: never linked, loaded where a GPU is asked for, replaced by a fake in tests.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/dylib.h"
#include "base/error.h"
#include "cuda/driver_types.h"

namespace tutti::cuda {

/// Members as in driver_functions.inc; all set but the optional ones.
struct Api {
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define DRIVER_FUNCTION(member, name, version, parameters) Status(*member) parameters = nullptr;
#define DRIVER_OPTION DRIVER_FUNCTION
#include "cuda/driver_functions.inc"
#undef DRIVER_OPTION
#undef DRIVER_FUNCTION
};

/// Any thread, any time.
class Driver {
 public:
  /// From a library that has cuGetProcAddress; initialised, with at least one GPU.
  /// Errors: cuda (a driver before CUDA 12.0, none that works, no GPU).
  static Result<std::shared_ptr<const Driver>> open(Dylib library);

  const Api api;
  const int version;  ///< 12040: CUDA 12.4

  /// Success, or an Error (Code::cuda) with CUDA's name of the code, its words, and a sentence where the code means
  /// that nothing will work any more. `function` is CUDA's name of what was called.
  Result<void> check(Status status, std::string_view function) const;
  Error error(Status status, std::string_view function) const;

  Result<int> devices() const;
  Result<int> device_attribute(Ordinal device, int attribute) const;

 private:
  struct Key {};

 public:
  Driver(Key, Dylib library, const Api& functions, int driver_version)
      : api(functions), version(driver_version), library_(std::move(library)) {}

 private:
  Dylib library_;
};

/// Whether nothing can be run in the context any more once a call has returned this: the process has to end.
bool is_sticky(Status status);

/// The one driver of a process, or the reason why there is none, asked for once.
class DriverSlot {
 public:
  /// `library`: a path in place of libcuda.so.1, or empty.
  explicit DriverSlot(std::string library) : library_(std::move(library)) {}

  /// Loads it at the first call. Errors: as Driver::open, and cuda when there is no library; the same ever after.
  Result<std::shared_ptr<const Driver>> get();

  /// The same, but null where nobody in this process has loaded CUDA so far: then no pointer can be one of a GPU.
  std::shared_ptr<const Driver> if_loaded();

 private:
  Result<std::shared_ptr<const Driver>> load();

  const std::string library_;
  std::mutex mutex_;
  std::shared_ptr<const Driver> driver_;
  std::optional<Error> failure_;
};

}  // namespace tutti::cuda
