// The subcommands, each in its own file.
#pragma once

#include <CLI/CLI.hpp>

namespace tutti::tool {

enum Exit : int { ok = 0, refused = 1, bad_usage = 2 };

/// Each function adds its subcommands to `app`; after one has run, `status` is the program's exit status.
void add_list(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);  // and svg
void add_verify(CLI::App& app, int& status);
void add_translate(CLI::App& app, int& status);  // import and export
void add_simulate(CLI::App& app, int& status);

}  // namespace tutti::tool
