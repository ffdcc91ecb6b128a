// What a fuzz target shows: one input, and examples to begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Inputs that are right.
std::vector<std::string> fuzz_examples();
