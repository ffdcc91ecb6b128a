// What must hold of any import, whatever was read.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "formats/imported.h"

namespace tutti::testing {

/// A plan is refused with words and as an invalid argument; or what it means is found out.
inline void judge(const Result<formats::Imported>& imported) {
  const auto check = [](const Error& error) {
    if (error.code == Code::invalid_argument && error.what.find(": ") != std::string::npos) return;
    std::fprintf(stderr, "refused without a place: %s\n", error.text().c_str());
    std::abort();
  };
  if (!imported) return check(imported.error());
  const auto meaning = formats::verify(*imported);
  if (!meaning && meaning.error().code != Code::invalid_argument) check(meaning.error());
}

}  // namespace tutti::testing
